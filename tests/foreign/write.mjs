// Writes what compare.py asks for with @confluentinc/schemaregistry: a JSON object on each line of the
// input, {"payload", "header"} (base64url; null: none) or {"error"} on each line of the output.
import { createFileRegistry, fromBinary } from "@bufbuild/protobuf";
import { FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import registry from "@confluentinc/schemaregistry";
import { createInterface } from "node:readline";

const client = registry.SchemaRegistryClient.newClient({ baseURLs: [process.argv[2]] });
const id = "__value_schema_id";

// {"$bytes": "…"} becomes a Buffer.
const revive = (_, value) =>
  value !== null && typeof value === "object" && "$bytes" in value ? Buffer.from(value.$bytes, "base64url") : value;

async function write(job) {
  const config = {
    autoRegisterSchemas: true,
    ...(job.framing === "header" ? { schemaIdSerializer: registry.HeaderSchemaIdSerializer } : {}),
  };
  let serializer, value;
  if (job.format === "protobuf") {
    const files = createFileRegistry(fromBinary(FileDescriptorSetSchema, Buffer.from(job.files, "base64url")));
    serializer = new registry.ProtobufSerializer(client, registry.SerdeType.VALUE, { ...config, registry: files });
    value = fromBinary(files.getMessage(job.message), Buffer.from(job.value, "base64url"));
  } else {
    await client.register(`${job.topic}-value`, {
      schema: job.schema, schemaType: job.format === "avro" ? "AVRO" : "JSON" });
    const Serializer = job.format === "avro" ? registry.AvroSerializer : registry.JsonSerializer;
    serializer = new Serializer(client, registry.SerdeType.VALUE,
      { ...config, autoRegisterSchemas: false, useLatestVersion: true });
    value = JSON.parse(job.value, revive);
  }
  const headers = {};
  const payload = await serializer.serialize(job.topic, value, headers);
  return { payload: payload.toString("base64url"), header: headers[id]?.toString("base64url") ?? null };
}

for await (const line of createInterface({ input: process.stdin })) {
  const answer = await write(JSON.parse(line)).catch((error) => ({ error: String(error) }));
  process.stdout.write(JSON.stringify(answer) + "\n");
}
