#!/usr/bin/env python3
"""Checks deploy/kubernetes as far as that goes without a cluster.

Holds the YAML against the configurations that it mounts: grace periods, ports, secrets, variables,
the lag's topic. And against itself: selectors, volumes, images, rights. The configurations are read
by hapax's own loader in tests/config/deploy_test.cpp.
"""

import json
import pathlib
import re

import yaml

import source_tree

PLACE = "deploy/kubernetes"
OVERLAY = f"{PLACE}/payments"
PAGE = "docs/operating.md"
CONNECTION_END = 5  # seconds that a connection may take to end beyond shutdown_timeout
POSTGRES, DNS = 5432, 53


def documents(root):
    """(path, document) of each YAML file, and what cannot be read."""
    found, complaints = [], []
    for path in sorted((root / PLACE).rglob("*.yaml")):
        name = str(path.relative_to(root / PLACE))
        try:
            found += [(name, document) for document in yaml.safe_load_all(path.read_text())]
        except yaml.YAMLError as error:
            complaints.append(f"{name}: {str(error).splitlines()[0]}")
    return found, complaints


def configuration(path):
    lines = path.read_text().splitlines()
    return json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for member in value.values() if isinstance(value, dict) else value:
            yield from strings(member)


def seconds(text):
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h)", text).groups()
    return int(number) * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit]


def port_of(address):
    return int(address.rsplit(":", 1)[1])


def pod_of(workload):
    return workload["spec"]["template"]["spec"]


def labels_of(workload):
    return workload["spec"]["template"]["metadata"]["labels"]


def containers_of(workload):
    return pod_of(workload).get("initContainers", []) + pod_of(workload)["containers"]


def matches(selector, labels):
    return bool(selector) and selector.items() <= labels.items()


def resource_complaints(root, found):
    """Each file belongs to a kustomization, and each name in one is there."""
    named = set()
    for path, document in found:
        if not path.endswith("kustomization.yaml"):
            continue
        folder = (root / PLACE / path).parent
        for entry in document.get("resources", []) + document.get("components", []):
            target = (folder / entry).resolve()
            named.add(target)
            if not target.exists():
                yield f"{path}: {entry} is not there"
        for generator in document.get("configMapGenerator", []):
            for file in generator["files"]:
                if not (folder / file).is_file():
                    yield f"{path}: {file} is not there"
    places = {(document.get("namespace"), json.dumps(document.get("labels")))
              for path, document in found if path.startswith("payments/") and "resources" in document}
    if len(places) != 1:
        yield "payments: the workers and their migration have not one namespace and label"
    for path, document in found:
        if document["kind"] == "Component" and {"namespace", "labels"} & set(document):
            yield f"{path}: kustomize 5.0 applies this before it makes the ConfigMaps"
    for path, _ in found:
        full = (root / PLACE / path).resolve()
        if full.name != "kustomization.yaml" and full not in named:
            yield f"{path}: no kustomization names it"


def selector_complaints(workloads, others):
    for path, workload in workloads:
        spec, labels = workload["spec"], labels_of(workload)
        selectors = [c["labelSelector"] for c in pod_of(workload).get("topologySpreadConstraints", [])]
        if workload["kind"] != "Job":
            selectors.append(spec["selector"])
        if not all(matches(selector.get("matchLabels"), labels) for selector in selectors):
            yield f"{path}: a selector does not match the labels of its pods"
    for path, other in others:
        spec = other["spec"]
        selector = {"Service": lambda: spec["selector"],
                    "PodDisruptionBudget": lambda: spec["selector"]["matchLabels"],
                    "NetworkPolicy": lambda: spec["podSelector"]["matchLabels"]}.get(other["kind"])
        if selector:
            meant = [w for _, w in workloads if matches(selector(), labels_of(w))]
            if len(meant) != 1:
                yield f"{path}: its selector does not match the pods of one workload"
            elif other["kind"] == "Service":
                names = {port["name"] for port in pod_of(meant[0])["containers"][0]["ports"]}
                if not names.issuperset(port["targetPort"] for port in spec["ports"]):
                    yield f"{path}: the pods have no port of that name"
        peers = [peer for rule in spec.get("ingress", []) + spec.get("egress", [])
                 for peer in rule.get("from", []) + rule.get("to", [])]
        if any("podSelector" in peer for peer in peers):
            yield f"{path}: kustomize would add the group's labels to the podSelector of a peer"


def pod_complaints(path, workload, version):
    pod = pod_of(workload)
    context = pod.get("securityContext", {})
    if not context.get("runAsNonRoot") or not context.get("runAsUser") or not context.get("fsGroup"):
        yield f"{path}: runs as root, or cannot read its secrets"
    if context.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield f"{path}: has no seccomp profile"
    if pod.get("automountServiceAccountToken") is not False:
        yield f"{path}: has a token for Kubernetes"
    secrets = {v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
    if ("hapax-owner" in secrets) != (workload["kind"] == "Job"):
        yield f"{path}: the owner's secret is for the migration, and only for it"
    volumes = {volume["name"] for volume in pod["volumes"]}
    for container in containers_of(workload):
        name = f"{path}: {container['name']}"
        closed = container.get("securityContext", {})
        if (closed.get("allowPrivilegeEscalation") is not False
                or closed.get("capabilities") != {"drop": ["ALL"]}
                or not closed.get("readOnlyRootFilesystem")):
            yield f"{name} is not closed: escalation, capabilities or a writable root"
        if "memory" not in container.get("resources", {}).get("limits", {}):
            yield f"{name} has no limit of memory"
        for mount in container["volumeMounts"]:
            if mount["name"] not in volumes:
                yield f"{name} mounts {mount['name']}, which is no volume"
            if "subPath" in mount:
                yield f"{name}: with subPath, a new secret would not come in"
        image, _, tag = container["image"].partition(":")
        if not re.match(r"\d", tag):
            yield f"{name}: image {container['image']} has no fixed version"
        elif image == "hapax" and tag != version:
            yield f"{name}: image {container['image']} is not this release, {version}"


def served_complaints(path, workload, config, policies):
    """Of a worker or a gate: probes, ports, and the time to leave."""
    pod = pod_of(workload)
    container = pod["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    listens = {"admin": config["admin"]["listen"]}
    if "gate" in config:
        listens["https"] = config["gate"]["listen"]
    for name, address in listens.items():
        if ports.get(name) != port_of(address):
            yield f"{path}: port {name} is {ports.get(name)}, and hapax listens on {address}"
        if address.startswith(("127.", "localhost", "[::1]")):
            yield f"{path}: {address} cannot be reached from outside of the pod"
    for probe, asked in (("livenessProbe", "/livez"), ("readinessProbe", "/readyz")):
        get = container.get(probe, {}).get("httpGet", {})
        if get.get("path") != asked or get.get("port") not in ("admin", ports["admin"]):
            yield f"{path}: {probe} does not ask {asked} of admin.listen"
    command = container.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command", ["", "0"])
    timeout = config.get("gate" if "gate" in config else "worker", {}).get("shutdown_timeout", "8s")
    needed = int(command[1]) + seconds(timeout) + CONNECTION_END
    if pod.get("terminationGracePeriodSeconds", 30) <= needed:
        yield f"{path}: terminationGracePeriodSeconds must be above {needed:g}"
    allowed = {direction: {port["port"] for policy in policies
                           for rule in policy["spec"].get(direction, []) for port in rule["ports"]}
               for direction in ("ingress", "egress")}
    brokers = config.get("kafka", {}).get("bootstrap.servers", "")
    wanted = {POSTGRES, DNS} | {port_of(broker) for broker in brokers.split(",") if broker}
    for direction, numbers in (("ingress", set(ports.values())), ("egress", wanted)):
        for number in sorted(numbers - allowed[direction]):
            yield f"{path}: its NetworkPolicy does not allow {direction} on port {number}"


def mounted_complaints(path, workload, config):
    """Each file and variable of the configuration comes into the container, and each secret is used."""
    container = pod_of(workload)["containers"][0]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod_of(workload)["volumes"]}
    used = set()
    for text in strings(config):
        file = text.removeprefix("@")
        if re.match(r"@|/(etc|run)/", text):
            folder = file.rsplit("/", 1)[0]
            used.add(folder)
            if folder not in mounts:
                yield f"{path}: {file} is in no mounted folder"
    for folder, name in mounts.items():
        if "secret" in volumes.get(name, {}) and folder not in used:
            yield f"{path}: the secret in {folder} is not named by the configuration"
    known = {variable["name"] for variable in container.get("env", [])}
    for name in sorted(set(re.findall(r"\$\{(\w+)\}", json.dumps(config))) - known):
        yield f"{path}: the configuration needs {name}, which is not set"


def configured_complaints(root, workloads, others, generated):
    for path, workload in workloads:
        if workload["kind"] == "Job":
            continue
        container = pod_of(workload)["containers"][0]
        folder, _, file = container["args"][container["args"].index("-c") + 1].rpartition("/")
        volume = {m["mountPath"]: m["name"] for m in container["volumeMounts"]}.get(folder)
        maps = [v["configMap"]["name"] for v in pod_of(workload)["volumes"]
                if v["name"] == volume and "configMap" in v]
        if not maps or file not in generated.get(maps[0], []):
            yield f"{path}: nothing mounts {folder}/{file}"
            continue
        config = configuration(root / OVERLAY / file)
        policies = [o for _, o in others if o["kind"] == "NetworkPolicy"
                    and matches(o["spec"]["podSelector"]["matchLabels"], labels_of(workload))]
        yield from served_complaints(path, workload, config, policies)
        yield from mounted_complaints(path, workload, config)


def scaling_complaints(root, others):
    config = configuration(root / OVERLAY / "worker.json")
    for path, other in others:
        if other["kind"] != "ScaledObject":
            continue
        spec, asked = other["spec"], other["spec"]["triggers"][0]["metadata"]
        if spec["minReplicaCount"] < 1:
            yield f"{path}: without a worker nothing is tried again"
        if (asked["bootstrapServers"] != config["kafka"]["bootstrap.servers"]
                or asked["consumerGroup"] != config["kafka"]["group.id"]
                or asked["topic"] not in [route["topic"] for route in config["routes"]]):
            yield f"{path}: it asks for the lag of another group than worker.json's"


def documented_complaints(root, workloads, generated):
    """What a person must make, and the folders to apply."""
    page = (root / PAGE).read_text()
    wanted = {volume["secret"]["secretName"] if "secret" in volume else volume["configMap"]["name"]
              for _, workload in workloads for volume in pod_of(workload)["volumes"]
              if "secret" in volume or "configMap" in volume}
    for name in sorted(wanted - set(generated)):
        if not re.search(rf"(?<![\w-]){name}(?![\w-])", page):
            yield f"{PAGE} does not name {name}, which must be made"
    for folder in re.findall(rf"kubectl apply -k ({PLACE}\S*)", page):
        if not (root / folder / "kustomization.yaml").is_file():
            yield f"{PAGE} applies {folder}, which is no kustomization"


def check(root):
    found, complaints = documents(root)
    if complaints:
        return complaints
    kustomizations = {path: document for path, document in found if path.endswith("kustomization.yaml")}
    resources = [(path, document) for path, document in found if path not in kustomizations]
    workloads = [(p, d) for p, d in resources if d["kind"] in ("StatefulSet", "Deployment", "Job")]
    others = [(p, d) for p, d in resources if (p, d) not in workloads]
    if len(workloads) != 3:
        complaints.append(f"{len(workloads)} workloads, not worker, gate and migration")
    version = re.search(r"project\([^)]*VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text())[1]
    for path, document in kustomizations.items():
        for image in document.get("images", []):
            if not re.match(r"\d", image.get("newTag", "")) and "digest" not in image:
                complaints.append(f"{path}: image {image['newName']} has no fixed version")
    generated = {generator["name"]: generator["files"] for document in kustomizations.values()
                 for generator in document.get("configMapGenerator", [])}
    complaints += resource_complaints(root, found)
    complaints += selector_complaints(workloads, others)
    for path, workload in workloads:
        complaints += pod_complaints(path, workload, version)
    complaints += configured_complaints(root, workloads, others, generated)
    complaints += scaling_complaints(root, others)
    complaints += documented_complaints(root, workloads, generated)
    return complaints


# The healthy tree is the real one; each fault is a text of it, replaced.
REAL = pathlib.Path(__file__).resolve().parents[2]
HEALTHY = {str(path.relative_to(REAL)): path.read_text()
           for path in [REAL / "CMakeLists.txt", REAL / PAGE, *sorted((REAL / PLACE).rglob("*"))] if path.is_file()}


def broken(name, old, new):
    path = name if name == PAGE else f"{PLACE}/{name}"
    assert old in HEALTHY[path], (name, old)
    return {path: HEALTHY[path].replace(old, new)}


WORKER, GATE, JOB = "worker/statefulset.yaml", "gate/deployment.yaml", "migrate/job.yaml"
SETTINGS = "payments/worker.json"
FAULTS = [
    (broken(WORKER, "kind: StatefulSet", "kind: ["), [WORKER]),
    (broken("worker/kustomization.yaml", "disruption.yaml, ", ""), ["worker/disruption.yaml: no kust"]),
    (broken("keda/kustomization.yaml", "authentication.yaml]", "password.yaml, authentication.yaml]"),
     ["password.yaml is not there"]),
    (broken("payments/kustomization.yaml", "[gate.json]", "[other.json]"),
     ["other.json is not there", "nothing mounts /etc/hapax/gate.json"]),
    (broken("payments/migrate/kustomization.yaml", "namespace: payments", "namespace: other"),
     ["not one namespace and label"]),
    (broken("payments/release/kustomization.yaml", "images:", "namespace: payments\nimages:"),
     ["before it makes the ConfigMaps"]),
    (broken("worker/disruption.yaml", "component: worker}", "component: workers}"),
     ["worker/disruption.yaml: its selector"]),
    (broken("gate/service.yaml", "component: gate}", "component: worker}"),
     ["gate/service.yaml: the pods have no port"]),
    (broken(WORKER, "matchLabels: *labels\n  template", "matchLabels: {app: other}\n  template"),
     ["a selector does not match"]),
    (broken("worker/network.yaml", "- to:\n", "- to:\n        - podSelector: {matchLabels: {a: b}}\n"),
     ["to the podSelector of a peer"]),
    (broken(WORKER, "PeriodSeconds: 20", "PeriodSeconds: 13"), ["must be above 13"]),
    (broken(SETTINGS, '"8s"', '"1m"'), ["must be above 65"]),
    (broken(GATE, 'sleep, "5"', 'sleep, "20"'), ["must be above 33"]),
    (broken(WORKER, "containerPort: 9464", "containerPort: 9465"),
     ["port admin is 9465", "ingress on port 9465"]),
    (broken(SETTINGS, "0.0.0.0:9464", "127.0.0.1:9464"), ["127.0.0.1:9464 cannot be reached"]),
    (broken("payments/gate.json", "0.0.0.0:8443", "0.0.0.0:8080"), ["port https is 8443"]),
    (broken(WORKER, "path: /livez", "path: /readyz"), ["livenessProbe does not ask /livez"]),
    (broken(WORKER, "path: /readyz, port: admin", "path: /readyz, port: 80"), ["readinessProbe"]),
    (broken(SETTINGS, "kafka-bootstrap.kafka:9093", "kafka-1:9094"),
     ["egress on port 9094", "the lag of another group"]),
    (broken("gate/network.yaml", "port: 8443", "port: 443"), ["ingress on port 8443"]),
    (broken("migrate/kustomization.yaml", "job.yaml, ", ""), ["migrate/job.yaml: no kustomization"]),
    (broken(SETTINGS, "@/run/secrets/hapax/database_url", "@/run/secrets/other/database_url"),
     ["/run/secrets/other/database_url is in no mounted folder"]),
    (broken("payments/gate.json", "/run/secrets/hapax-gate-tls/", "/etc/ssl/hapax/"),
     ["the secret in /run/secrets/hapax-gate-tls is not named"]),
    (broken(WORKER, "mountPath: /run/secrets/hapax,", "mountPath: /run/secrets/hapax, subPath: a,"),
     ["with subPath"]),
    (broken(WORKER, "name: POD_NAMESPACE", "name: NAMESPACE"), ["needs POD_NAMESPACE"]),
    (broken(WORKER, "hapax:0.1.0", "hapax:latest"), ["hapax:latest has no fixed version"]),
    (broken(WORKER, "hapax:0.1.0", "hapax"), ["hapax has no fixed version"]),
    (broken(GATE, "hapax:0.1.0", "hapax:0.0.9"), ["hapax:0.0.9 is not this release"]),
    (broken(JOB, "postgres:17", "postgres:latest"), ["postgres:latest has no fixed version"]),
    (broken("payments/release/kustomization.yaml", "newTag: 0.1.0", "newTag: latest"),
     ["hapax-payments has no fixed version"]),
    (broken(WORKER, "secretName: hapax-worker", "secretName: hapax-owner"), ["the owner's secret"]),
    (broken(WORKER, "runAsNonRoot: true", "runAsNonRoot: false"), ["runs as root"]),
    (broken(WORKER, "type: RuntimeDefault", "type: Unconfined"), ["no seccomp profile"]),
    (broken(WORKER, "AccountToken: false", "AccountToken: true"), ["has a token for Kubernetes"]),
    (broken(WORKER, "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"), ["is not closed"]),
    (broken(JOB, "drop: [ALL]", "drop: [CHOWN]"), ["schema is not", "sql is not", "rights is not"]),
    (broken(WORKER, "limits: {memory: 768Mi}", "limits: {}"), ["no limit of memory"]),
    (broken(WORKER, "{name: ca, mountPath", "{name: authority, mountPath"), ["authority, which is no vol"]),
    (broken("keda/scaledobject.yaml", "minReplicaCount: 2", "minReplicaCount: 0"), ["nothing is tried again"]),
    (broken("keda/scaledobject.yaml", "consumerGroup: payments", "consumerGroup: refunds"),
     ["another group than worker.json's"]),
    (broken(PAGE, "hapax-gate-tls", "hapax-tls"), ["does not name hapax-gate-tls"]),
    (broken(PAGE, "-k deploy/kubernetes/payments/migrate", "-k deploy/kubernetes/schema"),
     ["deploy/kubernetes/schema, which is no kustomization"]),
]

if __name__ == "__main__":
    source_tree.main(check, HEALTHY, FAULTS)
