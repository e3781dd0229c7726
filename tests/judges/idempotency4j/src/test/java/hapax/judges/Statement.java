package hapax.judges;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A statement of hapax's folder sql/, sent as hapax sends it. JDBC has "?" in the place of "$1". */
final class Statement {
    private static final Path FOLDER = Path.of(System.getenv("HAPAX_SQL"));
    private static final Pattern PARAMETER = Pattern.compile("\\$(\\d+)");

    private final String sql;
    private final List<Integer> order = new ArrayList<>();

    Statement(String file) {
        try {
            String text = Files.readString(FOLDER.resolve(file)).replaceAll("(?m)--.*$", "");
            Matcher matcher = PARAMETER.matcher(text);
            sql = matcher.replaceAll(found -> {
                order.add(Integer.parseInt(found.group(1)));
                return "?";
            });
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    interface Reader<T> {
        T read(ResultSet row) throws SQLException;
    }

    /** The first row; null if there is none, or if the statement has no rows. */
    <T> T first(Connection connection, Reader<T> reader, Object... parameters) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < order.size(); ++i)
                statement.setObject(i + 1, parameters[order.get(i) - 1]);
            if (!statement.execute()) return null;
            ResultSet rows = statement.getResultSet();
            return rows.next() ? reader.read(rows) : null;
        }
    }

    void run(Connection connection, Object... parameters) throws SQLException {
        first(connection, row -> true, parameters);
    }
}
