-- The schema as the first binlane made it, before it had a version; written by that binlane's own tables.
CREATE DATABASE binlane CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE binlane.channels (
  channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  uuid VARCHAR(36) NOT NULL,
  source_identity MEDIUMTEXT NOT NULL,
  watermark_seqno BIGINT UNSIGNED NOT NULL,
  source_file VARCHAR(512) NOT NULL,
  source_offset BIGINT UNSIGNED NOT NULL,
  gtid_set MEDIUMTEXT NOT NULL,
  source_time DOUBLE NOT NULL,
  fingerprint VARCHAR(128) NOT NULL,
  windows BIGINT NOT NULL,
  created_at DATETIME(6) NOT NULL,
  updated_at DATETIME(6) NOT NULL,
  PRIMARY KEY (channel),
  UNIQUE (uuid)
) ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE binlane.ddl (
  channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  seqno BIGINT UNSIGNED NOT NULL,
  lane INTEGER NOT NULL,
  statement MEDIUMTEXT NOT NULL,
  fingerprint VARCHAR(128) NOT NULL,
  state VARCHAR(10) NOT NULL,
  at DATETIME(6) NOT NULL,
  PRIMARY KEY (channel, seqno)
) ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE binlane.errors (
  id BIGINT NOT NULL AUTO_INCREMENT,
  channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  window_id VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  lane INTEGER NOT NULL,
  seqno BIGINT UNSIGNED NOT NULL,
  gtid MEDIUMTEXT NOT NULL,
  source_file VARCHAR(512) NOT NULL,
  source_offset BIGINT UNSIGNED NOT NULL,
  code INTEGER NOT NULL,
  text MEDIUMTEXT NOT NULL,
  at DATETIME(6) NOT NULL,
  PRIMARY KEY (id)
) ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX ix_binlane_errors_channel ON binlane.errors (channel);
CREATE TABLE binlane.heartbeats (
  channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  lane INTEGER NOT NULL,
  holder VARCHAR(255) NOT NULL,
  connection_id BIGINT UNSIGNED NOT NULL,
  beat_at DATETIME(6) NOT NULL,
  PRIMARY KEY (channel, lane)
) ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE binlane.positions (
  channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  lane INTEGER NOT NULL,
  seqno BIGINT UNSIGNED NOT NULL,
  window_id VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  digest VARCHAR(128) NOT NULL,
  inserts BIGINT NOT NULL,
  updates BIGINT NOT NULL,
  deletes BIGINT NOT NULL,
  blocks BIGINT NOT NULL,
  transactions BIGINT NOT NULL,
  updated_at DATETIME(6) NOT NULL,
  PRIMARY KEY (channel, lane)
) ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;
CREATE TABLE binlane.windows (
  channel VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  window_id VARCHAR(190) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  number BIGINT NOT NULL,
  state VARCHAR(10) NOT NULL,
  source_identity MEDIUMTEXT NOT NULL,
  first_seqno BIGINT UNSIGNED NOT NULL,
  last_seqno BIGINT UNSIGNED NOT NULL,
  end_file VARCHAR(512) NOT NULL,
  end_offset BIGINT UNSIGNED NOT NULL,
  end_gtid_set MEDIUMTEXT NOT NULL,
  end_time DOUBLE NOT NULL,
  end_fingerprint VARCHAR(128) NOT NULL,
  work VARCHAR(1024) NOT NULL,
  lanes INTEGER,
  plan_digest VARCHAR(128),
  totals MEDIUMTEXT,
  stop_at BIGINT UNSIGNED,
  summary MEDIUMTEXT,
  created_at DATETIME(6) NOT NULL,
  finished_at DATETIME(6),
  PRIMARY KEY (channel, window_id)
) ENGINE=InnoDB CHARSET=utf8mb4 COLLATE utf8mb4_bin;
