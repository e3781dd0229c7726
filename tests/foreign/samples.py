"""Random schemas with random values: Avro and JSON with the JSON that hapax must make of each value,
Protobuf as source."""

import base64
import decimal
import json
import random

TEXTS = ["", "a", "Grüße €", "\"\\\n\x01", "𝄞"]


def double(rng):
    return rng.choice([0.0, -1.5, 1e300, 0.1, 3.0, rng.uniform(-1e6, 1e6)])


class Avro:
    """`own`: only what both serializers write alike (no decimals, unions of null and one type)."""

    def __init__(self, seed, own):
        self.rng = random.Random(seed)
        self.own = own
        self.names = 0
        self.schema, self.make = self.record(0)

    def name(self):
        self.names += 1
        return f"n{self.names}"

    def record(self, level):
        fields = [(self.name(), *self.any(level + 1)) for _ in range(self.rng.randint(1, 6))]
        schema = {"type": "record", "name": f"t.{self.name()}", "namespace": "t",
                  "fields": [{"name": name, "type": kind} for name, kind, _ in fields]}

        def make():
            values = [(name, value()) for name, _, value in fields]
            return {n: v[0] for n, v in values}, {n: v[1] for n, v in values}

        return schema, make

    def any(self, level):
        simple = ["null", "boolean", "int", "long", "double", "bytes", "string", "enum", "fixed"]
        deep = ["record", "array", "map", "optional"]
        if not self.own:
            simple += ["decimal", "float"]
            deep += ["union"]
        kind = self.rng.choice(simple if level > 3 else simple + deep)
        return getattr(self, "of_" + kind, lambda _: self.primitive(kind))(level)

    def primitive(self, kind):
        rng = self.rng
        same = {
            "null": lambda: None, "boolean": lambda: rng.random() < 0.5,
            "int": lambda: rng.choice([0, -1, 2**31 - 1, -2**31, rng.randint(-1000, 1000)]),
            "long": lambda: rng.choice([0, -1, 2**52, rng.randint(-10**15, 10**15)]
                                       + ([] if self.own else [2**63 - 1, -2**63])),
            "double": lambda: double(rng), "float": lambda: rng.choice([0.0, -1.5, 0.25]),
            "string": lambda: rng.choice(TEXTS),
        }.get(kind)
        if same:
            return kind, lambda: (value := same(), value)
        return kind, lambda: self.bytes(rng.randint(0, 9))

    def bytes(self, size):
        value = self.rng.randbytes(size)
        return value, base64.b64encode(value).decode()

    def of_record(self, level):
        return self.record(level)

    def of_enum(self, _):
        symbols = [self.name().upper() for _ in range(3)]
        return ({"type": "enum", "name": self.name(), "symbols": symbols},
                lambda: (value := self.rng.choice(symbols), value))

    def of_fixed(self, _):
        return {"type": "fixed", "name": self.name(), "size": 4}, lambda: self.bytes(4)

    def of_decimal(self, _):
        scale = self.rng.randint(0, 6)

        def make():
            value = decimal.Decimal(self.rng.randint(-10**12, 10**12)).scaleb(-scale)
            return value, f"{value:f}"

        return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": scale}, make

    def of_array(self, level):
        schema, make = self.any(level + 1)

        def many():
            values = [make() for _ in range(self.rng.randint(0, 3))]
            return [v[0] for v in values], [v[1] for v in values]

        return {"type": "array", "items": schema}, many

    def of_map(self, level):
        schema, make = self.any(level + 1)

        def many():
            values = {self.rng.choice(TEXTS): make() for _ in range(self.rng.randint(0, 3))}
            return {k: v[0] for k, v in values.items()}, {k: v[1] for k, v in values.items()}

        return {"type": "map", "values": schema}, many

    def of_optional(self, _):
        schema, make = self.primitive(self.rng.choice(["long", "string", "boolean"]))
        return ["null", schema], lambda: make() if self.rng.random() < 0.5 else (None, None)

    def of_union(self, _):
        def make():
            if self.rng.random() < 0.3:
                return None, None
            value = self.rng.choice([self.rng.choice(TEXTS), self.rng.randint(-5, 5)])
            return value, {"string" if isinstance(value, str) else "long": value}

        return ["null", "string", "long"], make


def any_json(rng, level=0):
    kind = 5 if level == 0 else rng.randint(0, 3 if level > 3 else 5)
    if kind == 4:
        return [any_json(rng, level + 1) for _ in range(rng.randint(0, 3))]
    if kind == 5:
        return {f"m{i}": any_json(rng, level + 1) for i in range(rng.randint(0, 4))}
    return [None, rng.random() < 0.5, rng.randint(-2**53, 2**53), rng.choice(TEXTS)][kind]


SCALARS = ["double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32",
           "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"]
KEYS = [kind for kind in SCALARS if kind not in ("double", "float", "bytes")]
KNOWN = ["google.protobuf.Timestamp", "google.protobuf.Duration", "google.protobuf.Int64Value",
         "google.protobuf.StringValue", "google.protobuf.Struct", "google.type.Money",
         "google.type.Date"]
IMPORTS = "".join(f'import "google/{name}.proto";\n' for name in (
    "protobuf/timestamp", "protobuf/duration", "protobuf/wrappers", "protobuf/struct", "type/money",
    "type/date"))


def proto_messages(rng, prefix, others):
    """Declarations of three messages, the second with one in it, and the names of all."""
    names = [f"{prefix}{i}" for i in range(3)]
    types = others + [f".t.{name}" for name in names]
    text = f"enum {prefix}E {{ {prefix}ZERO = 0; {prefix}ONE = 1; {prefix}LOW = -7; }}\n"
    types.append(f".t.{prefix}E")
    for i, name in enumerate(names):
        # Python counts the map fields before it, too. Of two such messages hapax takes no index.
        inner = f"message In {{ {proto_fields(rng, types)} }}" if i == 1 else ""
        parts = [inner, proto_fields(rng, types)]
        rng.shuffle(parts)
        text += f"message {name} {{ {' '.join(parts)} }}\n"
    return text, [f"t.{name}" for name in names] + [f"t.{names[1]}.In"]


def proto_fields(rng, types):
    text, number = "", 1
    for _ in range(rng.randint(1, 8)):
        kind = rng.choice([rng.choice(SCALARS), rng.choice(types), "." + rng.choice(KNOWN)])
        form = rng.randint(0, 4)
        name = f"f_{number}"
        if form == 0:
            text += f"repeated {kind} {name} = {number}; "
        elif form == 1:
            text += f"map<{rng.choice(KEYS)}, {kind}> {name} = {number}; "
        elif form == 2:
            text += f"optional {kind} {name} = {number}; "
        elif form == 3:
            text += f"oneof o{number} {{ {kind} {name} = {number}; string x{number} = {number + 1}; }} "
        else:
            text += f"{kind} {name} = {number}; "
        number += rng.choice([2, 3, 40])
    return text


def proto_files(seed):
    """{name: source}, the one to write last, and its messages."""
    rng = random.Random(seed)
    head = 'syntax = "proto3";\npackage t;\n' + IMPORTS
    common, names = proto_messages(rng, f"C{seed}x", [])
    main, mine = proto_messages(rng, f"M{seed}x", [f".{name}" for name in names])
    base = f"common{seed}.proto"
    return ({base: head + common, f"main{seed}.proto": f'{head}import "{base}";\n{main}'},
            f"main{seed}.proto", mine)


def revivable(value):
    """Avro's value for write.mjs."""
    if isinstance(value, bytes):
        return {"$bytes": base64.urlsafe_b64encode(value).decode().rstrip("=")}
    if isinstance(value, dict):
        return {name: revivable(member) for name, member in value.items()}
    if isinstance(value, list):
        return [revivable(element) for element in value]
    return value


def same_json(text, value):
    return plain(json.loads(text)) == plain(value)


def plain(value):
    """JSON has one kind of number: 3.0 is 3. Python takes true for 1, so it gets another name."""
    if isinstance(value, dict):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, list):
        return [plain(element) for element in value]
    return ("boolean", value) if isinstance(value, bool) else value
