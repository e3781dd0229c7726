"""What the Python client of Debian 12 lacks, and its library has: ACLs for the user `worker`, and
deletions of records and of groups."""

import ctypes

LIBRARY = ctypes.CDLL("librdkafka.so.1")
PRODUCER = 0
KINDS = {"topic": 2, "group": 3}
OPERATIONS = {"read": 3, "describe": 8}
LITERAL, ALLOW = 3, 3
ANSWER_MS = 5000
WHO = b"User:worker"

for name in ("new", "conf_new", "queue_new", "queue_poll", "AclBinding_new", "AclBindingFilter_new",
             "AdminOptions_new", "DeleteGroup_new", "DeleteRecords_new", "topic_partition_list_new"):
    getattr(LIBRARY, f"rd_kafka_{name}").restype = ctypes.c_void_p
POINTER = ctypes.c_void_p
clients = {}


def client_of(bootstrap):
    """One for all that is asked there; it goes with the process."""
    if bootstrap not in clients:
        error = ctypes.create_string_buffer(512)
        conf = POINTER(LIBRARY.rd_kafka_conf_new())
        for key, value in (("bootstrap.servers", bootstrap), ("log_level", "0"),
                           ("reconnect.backoff.max.ms", "500")):
            LIBRARY.rd_kafka_conf_set(conf, key.encode(), value.encode(), error,
                                      ctypes.c_size_t(len(error)))
        clients[bootstrap] = POINTER(LIBRARY.rd_kafka_new(PRODUCER, conf, error,
                                                          ctypes.c_size_t(len(error))))
    return clients[bootstrap]


def ask(bootstrap, made, call, destroy=LIBRARY.rd_kafka_AclBinding_destroy):
    """True where Kafka did it."""
    client, queue = client_of(bootstrap), POINTER(LIBRARY.rd_kafka_queue_new(client_of(bootstrap)))
    acls = (POINTER * 1)(made)
    call(client, acls, ctypes.c_size_t(1), None, queue)
    event = LIBRARY.rd_kafka_queue_poll(queue, ANSWER_MS)
    done = bool(event) and LIBRARY.rd_kafka_event_error(POINTER(event)) == 0
    if event:
        LIBRARY.rd_kafka_event_destroy(POINTER(event))
    LIBRARY.rd_kafka_queue_destroy(queue)
    destroy(POINTER(made))
    return done


def parts(kind, name, operation):
    return (KINDS[kind], name.encode(), LITERAL, WHO, b"*", OPERATIONS[operation], ALLOW)


def create(bootstrap, kind, name, operation):
    error = ctypes.create_string_buffer(512)
    made = LIBRARY.rd_kafka_AclBinding_new(*parts(kind, name, operation), error,
                                           ctypes.c_size_t(len(error)))
    return ask(bootstrap, made, LIBRARY.rd_kafka_CreateAcls)


def delete(bootstrap, kind, name, operation):
    error = ctypes.create_string_buffer(512)
    made = LIBRARY.rd_kafka_AclBindingFilter_new(*parts(kind, name, operation), error,
                                                 ctypes.c_size_t(len(error)))
    return ask(bootstrap, made, LIBRARY.rd_kafka_DeleteAcls)


def delete_group(bootstrap, name):
    """Its offsets, too. True where Kafka answered; it refuses a group that has members."""
    made = LIBRARY.rd_kafka_DeleteGroup_new(name.encode())
    return ask(bootstrap, made, LIBRARY.rd_kafka_DeleteGroups, LIBRARY.rd_kafka_DeleteGroup_destroy)


def delete_records(bootstrap, topic, partition, below):
    places = POINTER(LIBRARY.rd_kafka_topic_partition_list_new(1))
    LIBRARY.rd_kafka_topic_partition_list_add(places, topic.encode(), partition)
    LIBRARY.rd_kafka_topic_partition_list_set_offset(places, topic.encode(), partition,
                                                     ctypes.c_int64(below))
    made = LIBRARY.rd_kafka_DeleteRecords_new(places)
    LIBRARY.rd_kafka_topic_partition_list_destroy(places)
    return ask(bootstrap, made, LIBRARY.rd_kafka_DeleteRecords,
               LIBRARY.rd_kafka_DeleteRecords_destroy)
