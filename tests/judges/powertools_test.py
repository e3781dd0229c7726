"""AWS Powertools' idempotency decorator over hapax's own statements, as calls to the outside.

Environment: HAPAX_SQL, the folder of statements; HAPAX_URL, the worker's role. Run by ./run.
"""

import itertools
import json
import os
import pathlib
import threading
import time
import unittest
import uuid
import warnings

import psycopg
from aws_lambda_powertools.utilities.idempotency import IdempotencyConfig, idempotent_function
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyAlreadyInProgressError, IdempotencyItemAlreadyExistsError,
    IdempotencyItemNotFoundError, IdempotencyPersistenceLayerError, IdempotencyValidationError)
from aws_lambda_powertools.utilities.idempotency.persistence.base import (
    STATUS_CONSTANTS, BasePersistenceLayer, DataRecord)

warnings.simplefilter("ignore")
SQL = pathlib.Path(os.environ["HAPAX_SQL"])
OFFSETS = itertools.count()


class HapaxLayer(BasePersistenceLayer):
    """A function that fails releases its key: so it must surely not have called."""

    def __init__(self):
        super().__init__()
        self.scope = str(uuid.uuid4())
        self.taken = {}  # key -> (holder, token)

    @staticmethod
    def transact(*statements):
        """The rows of the last of them, each (file, parameters)."""
        with psycopg.connect(os.environ["HAPAX_URL"], cursor_factory=psycopg.RawCursor) as connection:
            connection.execute("SET TRANSACTION READ WRITE")
            for file, parameters in statements:
                text = "\n".join(line for line in (SQL / file).read_text().splitlines()
                                 if not line.startswith("--"))
                cursor = connection.execute(text, parameters)
            return cursor.fetchall() if cursor.description else []

    def _put_record(self, data_record):
        until = data_record.in_progress_expiry_timestamp
        lease = until / 1000 - time.time() if until else 3600.0
        [[holder]] = self.transact(("outside/register_holder.sql", ("judge", "python", max(lease, 0.001))))
        key = data_record.idempotency_key
        rows = self.transact(("outside/take_calls.sql", (
            [key], [self.scope], [""], [bytes.fromhex(data_record.payload_hash)], ["payload"], ["judge"], ["judged"],
            [0], [0], [next(OFFSETS)], [0], [False], holder, False)))
        if rows and rows[0][2]:  # answered by a caller who died before he booked it
            self.book(key, rows[0][1], json.dumps(rows[0][5]), 3600.0)
        if not rows or rows[0][2]:
            found = self._get_record(key)
            self._validate_payload(data_payload=data_record, stored_data_record=found)
            raise IdempotencyItemAlreadyExistsError(old_data_record=found)
        self.taken[key] = (holder, rows[0][1])

    def _get_record(self, idempotency_key):
        rows = self.transact(("message/read_answer.sql", (idempotency_key, self.scope, "")))
        if not rows or rows[0][0] == "failed":
            raise IdempotencyItemNotFoundError
        status, fingerprint, result = rows[0][0], rows[0][1], rows[0][8]
        return DataRecord(idempotency_key,
                          STATUS_CONSTANTS["COMPLETED" if status == "completed" else "INPROGRESS"],
                          expiry_timestamp=min(rows[0][9], 253402300799),
                          response_data=json.dumps(result) if status == "completed" else "",
                          payload_hash=fingerprint)

    def _update_record(self, data_record):
        key, (holder, token) = data_record.idempotency_key, self.taken[data_record.idempotency_key]
        if not self.transact(("outside/keep_answers.sql",
                              ([key], [self.scope], [""], [token], [data_record.response_data]))):
            raise RuntimeError("another holder took the key over")
        self.book(key, token, data_record.response_data, float(data_record.expiry_timestamp - time.time()))
        self.transact(("outside/end_holder.sql", (holder,)))

    def book(self, key, token, answer, seconds):
        """Changes nothing if whoever met the kept answer has booked it."""
        nonce = str(uuid.uuid4())
        self.transact(("message/arm.sql", (nonce,)),
                      ("outside/claim_answered.sql",
                       (key, self.scope, "", token, seconds, "judge", "judged", 0)),
                      ("message/store_result.sql", (key, self.scope, "", answer)),
                      ("message/seal.sql", (nonce,)))

    def _delete_record(self, data_record):
        holder, token = self.taken[data_record.idempotency_key]
        self.transact(("outside/end_call.sql", (data_record.idempotency_key, self.scope, "", token, "failed",
                                                "the function failed", 3600.0)))
        self.transact(("outside/end_holder.sql", (holder,)))


class Context:
    def __init__(self, left_ms):
        self.left_ms = left_ms

    def get_remaining_time_in_millis(self):
        return self.left_ms


class Powertools(unittest.TestCase):
    def setUp(self):
        self.layer, self.calls = HapaxLayer(), []
        self.body = lambda order: {"charged": order["amount"]}

    def function(self, left_ms=60_000):
        config = IdempotencyConfig(event_key_jmespath="id", payload_validation_jmespath="amount",
                                   lambda_context=Context(left_ms))

        @idempotent_function(data_keyword_argument="order", persistence_store=self.layer, config=config)
        def charge(order):
            self.calls.append(order["id"])
            return self.body(order)
        return charge

    def test_a_repeated_call_returns_the_stored_result(self):
        charge = self.function()
        results = [charge(order={"id": "o-1", "amount": 5}) for _ in range(3)]
        self.assertEqual(results, [{"charged": 5}] * 3)
        self.assertEqual(len(self.calls), 1)

    def test_other_keys_are_independent(self):
        charge = self.function()
        charge(order={"id": "o-1", "amount": 5})
        charge(order={"id": "o-2", "amount": 5})
        self.assertEqual(self.calls, ["o-1", "o-2"])

    def test_another_payload_under_a_completed_key_is_refused(self):
        charge = self.function()
        charge(order={"id": "o-1", "amount": 5})
        with self.assertRaises(IdempotencyValidationError):
            charge(order={"id": "o-1", "amount": 6})
        self.assertEqual(len(self.calls), 1)

    def test_a_call_in_progress_is_refused(self):
        inside = []

        def body(order):
            with self.assertRaises(IdempotencyAlreadyInProgressError):
                self.function()(order=order)
            inside.append(True)
            return {}
        self.body = body
        self.function()(order={"id": "o-1", "amount": 5})
        self.assertEqual((inside, len(self.calls)), ([True], 1))

    def test_a_failed_function_runs_again(self):
        def fails(order):
            raise ValueError("no")
        self.body, good = fails, self.body
        with self.assertRaises(ValueError):
            self.function()(order={"id": "o-1", "amount": 5})
        self.body = good
        self.assertEqual(self.function()(order={"id": "o-1", "amount": 5}), {"charged": 5})
        self.assertEqual(len(self.calls), 2)

    def test_a_call_whose_time_is_over_is_taken_over_and_its_late_end_changes_nothing(self):
        def late(order):
            self.body = lambda order: {"by": "the second"}
            deadline = time.time() + 30
            while time.time() < deadline:
                try:
                    return {"first saw": self.function()(order=order)}
                except IdempotencyAlreadyInProgressError:
                    pass
            self.fail("was never taken over")
        self.body = late
        with self.assertRaises(IdempotencyPersistenceLayerError):  # its end is refused: its token is old
            self.function(left_ms=200)(order={"id": "o-1", "amount": 5})

    def test_of_twenty_threads_one_runs(self):
        ends, charge = [], self.function()
        start = threading.Barrier(20)

        def caller():
            start.wait()
            while True:
                try:
                    ends.append(charge(order={"id": "o-1", "amount": 5}))
                    return
                except IdempotencyAlreadyInProgressError:
                    pass
        threads = [threading.Thread(target=caller) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(ends, [{"charged": 5}] * 20)
        self.assertEqual(len(self.calls), 1)


if __name__ == "__main__":
    unittest.main()
