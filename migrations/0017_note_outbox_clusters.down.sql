DROP TABLE hapax.outbox_clusters;
