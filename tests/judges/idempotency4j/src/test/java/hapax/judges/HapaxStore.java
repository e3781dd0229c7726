package hapax.judges;

import io.github.josipmusa.idempotency.core.AcquireResult;
import io.github.josipmusa.idempotency.core.IdempotencyContext;
import io.github.josipmusa.idempotency.core.IdempotencyStore;
import io.github.josipmusa.idempotency.core.StoredResponse;
import io.github.josipmusa.idempotency.core.exception.IdempotencyStoreException;
import java.sql.Array;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.time.Duration;
import java.util.Deque;
import java.util.HexFormat;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The contract's store, as calls to the outside of a route with `repeat: idempotent`. Each acquisition is a holder with
 * a lease of its own. `complete` keeps the answer, then books it in a sealed transaction. It connects as the worker.
 */
final class HapaxStore implements IdempotencyStore {
    private static final Statement REGISTER = new Statement("outside/register_holder.sql");
    private static final Statement RENEW = new Statement("outside/renew_holder.sql");
    private static final Statement END_HOLDER = new Statement("outside/end_holder.sql");
    private static final Statement TAKE = new Statement("outside/take_calls.sql");
    private static final Statement KEEP = new Statement("outside/keep_answers.sql");
    private static final Statement END = new Statement("outside/end_call.sql");
    private static final Statement ARM = new Statement("message/arm.sql");
    private static final Statement CLAIM = new Statement("outside/claim_answered.sql");
    private static final Statement STORE = new Statement("message/store_result.sql");
    private static final Statement SEAL = new Statement("message/seal.sql");
    private static final Statement READ = new Statement("message/read_answer.sql");
    private static final Statement EXPIRE = new Statement("worker/expire_keys.sql");

    private static final String GROUP = "judge";
    private static final String TOPIC = "judged";
    private static final String TENANT = "";
    private static final long ASK_AGAIN_MS = 10;
    private static final AtomicLong OFFSET = new AtomicLong();

    private final String url = System.getenv("HAPAX_URL");
    private final String scope = UUID.randomUUID().toString();
    private final Deque<Connection> idle = new ConcurrentLinkedDeque<>();
    private final Map<String, Taken> taken = new ConcurrentHashMap<>(); // the newest of this process

    private record Taken(long holder, long token, boolean answered, String answer) {}

    private record Found(String status, String fingerprint, String result) {}

    private interface Work<T> {
        T run(Connection connection) throws SQLException;
    }

    /** One transaction. The worker's role is read-only outside of those that it opens so. */
    private <T> T transact(Work<T> work) {
        Connection connection = idle.poll();
        try {
            if (connection == null) {
                connection = DriverManager.getConnection(url);
                connection.setAutoCommit(false);
            }
            connection.createStatement().execute("SET TRANSACTION READ WRITE");
            T result = work.run(connection);
            connection.commit();
            idle.push(connection);
            return result;
        } catch (SQLException e) {
            try {
                if (connection != null) connection.close();
            } catch (SQLException ignored) {
                e.addSuppressed(ignored);
            }
            throw new IdempotencyStoreException(e.getMessage(), e);
        }
    }

    @Override
    public AcquireResult tryAcquire(IdempotencyContext context) {
        long deadline = System.nanoTime() + context.lockTimeout().toNanos();
        String key = context.key();
        long offset = OFFSET.incrementAndGet();
        while (true) {
            purgeExpired();
            Taken mine = take(context, offset);
            if (mine != null && !mine.answered) {
                taken.put(key, mine);
                return AcquireResult.acquired();
            }
            if (mine != null) book(key, mine, mine.answer, context.ttl()); // the one who answered died before that
            Found found = read(key);
            if (found != null && found.status.equals("completed"))
                return found.fingerprint.equals(context.requestFingerprint())
                        ? AcquireResult.duplicate(Responses.decode(found.result))
                        : AcquireResult.fingerprintMismatch(found.fingerprint, context.requestFingerprint());
            if (System.nanoTime() >= deadline) return AcquireResult.lockTimeout(key);
            try {
                Thread.sleep(ASK_AGAIN_MS);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                return AcquireResult.lockTimeout(key);
            }
        }
    }

    private Taken take(IdempotencyContext context, long offset) {
        byte[] fingerprint = HexFormat.of().parseHex(context.requestFingerprint());
        return transact(c -> {
            long holder = REGISTER.first(c, row -> row.getLong(1), GROUP, "java", seconds(context.lockTimeout()));
            Taken mine = TAKE.first(
                    c,
                    row -> new Taken(holder, row.getLong("token"), row.getBoolean("answered"), row.getString("answer")),
                    one(c, "text", context.key()), one(c, "text", scope), one(c, "text", TENANT),
                    one(c, "bytea", fingerprint), one(c, "text", "payload"), one(c, "text", GROUP),
                    one(c, "text", TOPIC), one(c, "int4", 0), one(c, "int4", 0), one(c, "int8", offset),
                    one(c, "int8", 0L), one(c, "bool", false), holder, false);
            if (mine == null) END_HOLDER.run(c, holder);
            return mine;
        });
    }

    private Found read(String key) {
        return transact(c -> READ.first(
                c,
                row -> new Found(row.getString("status"), row.getString("fingerprint"), row.getString("result")),
                key, scope, TENANT));
    }

    @Override
    public void complete(String key, StoredResponse response, Duration ttl) {
        Taken mine = mine(key);
        String answer = Responses.encode(response);
        boolean kept = transact(c -> KEEP.first(
                        c, row -> true, one(c, "text", key), one(c, "text", scope), one(c, "text", TENANT),
                        one(c, "int8", mine.token), one(c, "text", answer)) != null);
        if (!kept) throw new IdempotencyStoreException("the key is not this caller's any more: " + key);
        book(key, mine, answer, ttl);
    }

    private void book(String key, Taken mine, String answer, Duration ttl) {
        String nonce = UUID.randomUUID().toString();
        transact(c -> {
            ARM.run(c, nonce);
            // None: whoever met the kept answer has booked it meanwhile.
            if (CLAIM.first(c, row -> true, key, scope, TENANT, mine.token, seconds(ttl), GROUP, TOPIC, 0) != null)
                STORE.run(c, key, scope, TENANT, json(answer));
            SEAL.run(c, nonce);
            return true;
        });
        transact(c -> END_HOLDER.first(c, row -> true, mine.holder));
    }

    @Override
    public void release(String key) {
        Taken mine = mine(key);
        boolean ended = transact(c ->
                END.first(c, row -> true, key, scope, TENANT, mine.token, "failed", "released", 3600.0) != null);
        if (!ended) throw new IdempotencyStoreException("the key is not this caller's any more: " + key);
        transact(c -> END_HOLDER.first(c, row -> true, mine.holder));
    }

    @Override
    public void extendLock(String key, Duration extension) {
        transact(c -> RENEW.first(c, row -> true, mine(key).holder, seconds(extension)));
    }

    @Override
    public int purgeExpired() {
        return transact(c -> EXPIRE.first(
                c, row -> row.getInt(1), 1000, "-infinity", "{" + scope + "}", "{now}", null));
    }

    /** PostgreSQL refuses what was never taken: no key has this token. */
    private Taken mine(String key) {
        return taken.getOrDefault(key, new Taken(-1, -1, false, null));
    }

    private static double seconds(Duration duration) {
        return duration.toNanos() / 1e9;
    }

    private static Array one(Connection connection, String type, Object value) throws SQLException {
        return connection.createArrayOf(
                type, value instanceof byte[] bytes ? new byte[][] {bytes} : new Object[] {value});
    }

    private static Object json(String text) throws SQLException {
        org.postgresql.util.PGobject object = new org.postgresql.util.PGobject();
        object.setType("json");
        object.setValue(text);
        return object;
    }
}
