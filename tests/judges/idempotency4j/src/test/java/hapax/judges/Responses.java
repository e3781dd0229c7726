package hapax.judges;

import io.github.josipmusa.idempotency.core.StoredResponse;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A response as a JSON string, for the column of results. */
final class Responses {
    static String encode(StoredResponse response) {
        try {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(response.statusCode());
            out.writeLong(response.completedAt().toEpochMilli());
            out.writeInt(response.headers().size());
            for (Map.Entry<String, List<String>> header : response.headers().entrySet()) {
                out.writeUTF(header.getKey());
                out.writeInt(header.getValue().size());
                for (String value : header.getValue()) out.writeUTF(value);
            }
            out.write(response.body());
            return '"' + Base64.getEncoder().encodeToString(bytes.toByteArray()) + '"';
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    static StoredResponse decode(String json) {
        try {
            byte[] bytes = Base64.getDecoder().decode(json.substring(1, json.length() - 1));
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(bytes));
            int status = in.readInt();
            Instant completed = Instant.ofEpochMilli(in.readLong());
            Map<String, List<String>> headers = new HashMap<>();
            for (int left = in.readInt(); left > 0; --left) {
                List<String> values = headers.computeIfAbsent(in.readUTF(), name -> new ArrayList<>());
                for (int more = in.readInt(); more > 0; --more) values.add(in.readUTF());
            }
            return new StoredResponse(status, headers, in.readAllBytes(), completed);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private Responses() {}
}
