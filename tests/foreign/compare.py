"""Lets both serializers write, and compares what hapax decodes; tests/foreign/run starts it."""

import base64
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import urllib.request

import front
import google.type
import samples
from confluent_kafka.schema_registry import (Schema, SchemaReference, SchemaRegistryClient,
                                             header_schema_id_serializer,
                                             prefix_schema_id_serializer)
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from grpc_tools import protoc

FRAMINGS = {"prefix": prefix_schema_id_serializer, "header": header_schema_id_serializer}
VALUES = 4  # of each schema


def text64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Process:
    """Answers a line for each line."""

    def __init__(self, *command):
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                      text=True, encoding="utf-8")

    def ask(self, question):
        self.child.stdin.write(json.dumps(question) + "\n")
        self.child.stdin.flush()
        return self.child.stdout.readline()


class Comparison:
    def __init__(self, url, decoder, writer):
        self.client = SchemaRegistryClient({"url": url})
        self.node = Process("node", writer, url)
        self.decoders = {name: Process(decoder, name, url) for name in ("avro", "json", "protobuf")}
        self.counts = collections.Counter()

    def check(self, who, format, framing, written, is_right, value):
        key = (who, format, framing)
        if "error" in written:
            self.counts[key + ("not written",)] += 1
            print("not written:", *key, written["error"][:300], repr(value)[:200])
            return
        got = self.decoders[format].ask(written)
        good = not got.startswith("! ") and is_right(got)
        self.counts[key + ("same" if good else "DIFFERENT",)] += 1
        if not good:
            print("DIFFERENT:", *key, "hapax:", got.strip()[:600], "value:", repr(value)[:600])

    def python(self, format, framing, topic, serializer, value, is_right):
        headers = []
        context = SerializationContext(topic, MessageField.VALUE, headers=headers)
        try:
            payload = serializer(value, context)
        except Exception as error:
            return self.check("python", format, framing, {"error": repr(error)}, is_right, value)
        header = dict(headers).get("__value_schema_id")
        written = {"payload": text64(payload), "header": text64(header) if header else None}
        self.check("python", format, framing, written, is_right, value)

    def avro(self, seed):
        for own in (False, True):
            sample = samples.Avro(seed, own)
            schema = json.dumps(sample.schema)
            for framing, id_serializer in FRAMINGS.items():
                topic = f"avro{seed}{own}"
                serializer = AvroSerializer(self.client, schema,
                                            conf={"schema.id.serializer": id_serializer})
                for _ in range(VALUES):
                    value, expected = sample.make()
                    right = lambda got: samples.same_json(got, expected)
                    self.python("avro", framing, topic, serializer, value, right)
                    if own:
                        job = {"format": "avro", "framing": framing, "topic": topic,
                               "schema": schema, "value": json.dumps(samples.revivable(value))}
                        written = json.loads(self.node.ask(job))
                        self.check("node", "avro", framing, written, right, value)

    def json(self, seed):
        rng = random.Random(seed)
        schema = json.dumps({"$schema": "http://json-schema.org/draft-07/schema#",
                             "title": f"J{seed}", "type": "object"})
        for framing, id_serializer in FRAMINGS.items():
            serializer = JSONSerializer(schema, self.client,
                                        conf={"schema.id.serializer": id_serializer})
            for _ in range(VALUES):
                value = samples.any_json(rng)
                right = lambda got: samples.same_json(got, value)
                self.python("json", framing, f"json{seed}", serializer, value, right)
                job = {"format": "json", "framing": framing, "topic": f"json{seed}",
                       "schema": schema, "value": json.dumps(value)}
                self.check("node", "json", framing, json.loads(self.node.ask(job)), right, value)

    def protobuf(self, seed):
        """Of each message: registered by the serializers (descriptors), and beforehand as source."""
        rng = random.Random(seed)
        sources, main, names = samples.proto_files(seed)
        files = compiled(sources)
        pool = descriptor_pool.DescriptorPool()
        for file in files.file:
            pool.Add(file)
        for name in names:
            kind = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
            for framing, id_serializer in FRAMINGS.items():
                for is_source in (False, True):
                    topic = f"{name}-{is_source}"
                    if is_source:
                        id_serializer = self.as_source(topic, sources, main, id_serializer)
                    serializer = ProtobufSerializer(kind, self.client,
                                                    conf={"schema.id.serializer": id_serializer})
                    for _ in range(VALUES):
                        value = kind()
                        fill(rng, value)
                        right = lambda got: read_as(kind, got) == value
                        self.python("protobuf", framing, topic, serializer, value, right)
                        if is_source:
                            continue
                        job = {"format": "protobuf", "framing": framing, "topic": topic + "-node",
                               "message": name, "value": text64(value.SerializeToString()),
                               "files": text64(files.SerializeToString())}
                        written = json.loads(self.node.ask(job))
                        self.check("node", "protobuf", framing, written, right, value)

    def as_source(self, topic, sources, main, id_serializer):
        """Python's serializer registers descriptors only; this names the source in their place."""
        references = []
        for name, source in sources.items():
            subject = f"source-{topic}" if name == main else f"source-{name}"
            schema = Schema(source, "PROTOBUF", references)
            known = self.client.register_schema_full_response(subject, schema)
            version = self.client.get_latest_version(subject).version
            references = [SchemaReference(name, subject, version)]

        def serialize(payload, context, schema_id):
            named = SchemaId("PROTOBUF", known.schema_id, known.guid, schema_id.message_indexes)
            return id_serializer(payload, context, named)

        return serialize


def read_as(kind, text):
    try:
        return json_format.Parse(text, kind())
    except json_format.ParseError as error:
        print(error)
        return None


def compiled(sources):
    with tempfile.TemporaryDirectory() as folder:
        for name, source in sources.items():
            (pathlib.Path(folder) / name).write_text(source)
        roots = [folder, list(google.type.__path__)[0] + "/../..",
                 str(pathlib.Path(protoc.__file__).parent / "_proto")]
        out = folder + "/out"
        arguments = ["", *(f"-I{root}" for root in roots), "--include_imports",
                     f"--descriptor_set_out={out}", *sources]
        if protoc.main(arguments) != 0:
            raise SystemExit("protoc does not take the schema")
        return descriptor_pb2.FileDescriptorSet.FromString(pathlib.Path(out).read_bytes())


def number_of(rng, kind):
    signed = kind in ("int32", "int64", "sint32", "sint64", "sfixed32", "sfixed64")
    bits = 32 if kind.endswith("32") else 64
    low, high = (-2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return rng.choice([0, 1, low, high, rng.randint(low, high)])


def scalar(rng, field):
    by_type = {1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64",
               7: "fixed32", 8: "bool", 9: "string", 12: "bytes", 13: "uint32", 15: "sfixed32",
               16: "sfixed64", 17: "sint32", 18: "sint64"}
    if field.type == field.TYPE_ENUM:
        return rng.choice([value.number for value in field.enum_type.values] + [99])
    kind = by_type[field.type]
    if kind in ("double", "float"):
        return rng.choice([0.0, -1.5, 0.25, float("inf"), 1e30])
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "string":
        return rng.choice(samples.TEXTS)
    return rng.randbytes(3) if kind == "bytes" else number_of(rng, kind)


def fill(rng, message, level=0):
    name = message.DESCRIPTOR.full_name
    message.SetInParent()
    if name in ("google.protobuf.Timestamp", "google.protobuf.Duration"):
        message.seconds = rng.randint(0, 10**9)
        message.nanos = rng.choice([0, 1, 500_000_000])
        return
    if name == "google.protobuf.Struct":
        message.update({"a": None, "b": [1.5, {"c": "x"}], "d": rng.random() < 0.5})
        return
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.4 or (field.message_type and level > 3):
            continue
        target = getattr(message, field.name)
        if field.message_type and field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            for _ in range(rng.randint(0, 3)):
                if value.message_type:
                    fill(rng, target[scalar(rng, key)], level + 1)
                else:
                    target[scalar(rng, key)] = scalar(rng, value)
        elif field.is_repeated:
            for _ in range(rng.randint(0, 3)):
                if field.message_type:
                    fill(rng, target.add(), level + 1)
                else:
                    target.append(scalar(rng, field))
        elif field.message_type:
            fill(rng, target, level + 1)
        else:
            setattr(message, field.name, scalar(rng, field))


def await_registry(url):
    for _ in range(600):
        try:
            urllib.request.urlopen(url + "/schemas/types").close()
            return
        except OSError:
            time.sleep(0.5)
    raise SystemExit("the registry does not come up")


def main(behind, decoder, writer, seeds):
    await_registry(behind)
    comparison = Comparison(front.serve(behind), decoder, writer)
    for seed in range(1, int(seeds) + 1):
        comparison.avro(seed)
        comparison.json(seed)
        comparison.protobuf(seed)
    for key, count in sorted(comparison.counts.items()):
        print(*key, count)
    return int(any(key[3] == "DIFFERENT" for key in comparison.counts))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
