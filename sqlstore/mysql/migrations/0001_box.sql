-- One table set: facts, work, outcomes. See docs/ARCHITECTURE.md.
-- Names are bytes, so that no collation makes two of them one. Times are
-- microseconds since 1970, so that no session's time zone moves them.

-- Numbers messages, positions within groups, and turns to be claimed. It stays
-- empty: only its counter is of use, which no transaction holds up.
CREATE TABLE IF NOT EXISTS {{sequence}} (n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY) ENGINE = InnoDB;

-- What arrived. The primary key is the deduplication: as a secondary one it
-- would lock the gap before a new message in a caller's transaction.
CREATE TABLE IF NOT EXISTS {{message}} (
    consumer       VARBINARY(64) NOT NULL,
    source         VARBINARY(1020) NOT NULL,
    id             VARBINARY(1020) NOT NULL,
    seq            BIGINT NOT NULL,
    grp            VARBINARY(1020) NOT NULL,
    topic          VARBINARY(1020) NOT NULL,
    payload        LONGBLOB,
    headers        LONGBLOB,
    hash           VARBINARY(512),
    hash_alg       VARBINARY(32) NOT NULL,
    digest         VARBINARY(32),
    due_at         BIGINT,
    expires_at     BIGINT,
    occurred_at    BIGINT,
    correlation_id VARBINARY(1020) NOT NULL,
    causation_id   VARBINARY(1020) NOT NULL,
    first_seen     BIGINT NOT NULL,
    revision       INT NOT NULL,
    PRIMARY KEY (consumer, source, id),
    UNIQUE KEY seq (seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What is still to do. Rows are small and go when the message is done.
-- stage: 1 seen, 2 idle, 3 scheduled, 4 deferred, 5 arrived, 6 queued, 7 ready,
-- 8 suspect, 9 leased, 10 dead, 11 parked.
-- One index serves all that looks for rows: by shelf, which is the stage but one
-- for all that wait for a time; by line, which is the group where a group waits
-- in order, and the topic of what is parked; by turn, which orders that shelf.
CREATE TABLE IF NOT EXISTS {{work}} (
    seq            BIGINT NOT NULL PRIMARY KEY,
    consumer       VARBINARY(64) NOT NULL,
    topic          VARBINARY(1020) NOT NULL,
    grp            VARBINARY(1020) NOT NULL,
    stage          TINYINT NOT NULL,
    position       BIGINT NOT NULL,
    ready_position BIGINT NOT NULL,
    attempt        INT NOT NULL,
    lost           INT NOT NULL,
    due            BIGINT,
    retry          BIGINT,
    next           BIGINT,
    expires        BIGINT,
    owner          BLOB NOT NULL,
    fence          BIGINT NOT NULL,
    lease_until    BIGINT,
    guard          TINYINT NOT NULL,
    revision       INT NOT NULL,
    last_error     VARBINARY(2000) NOT NULL,
    last_seen      BIGINT NOT NULL,
    shelf          TINYINT GENERATED ALWAYS AS (CASE stage WHEN 4 THEN 3 ELSE stage END) STORED,
    line           VARBINARY(1020) GENERATED ALWAYS AS (CASE WHEN stage IN (5, 6) THEN grp WHEN stage = 11 THEN topic ELSE '' END) STORED,
    turn           BIGINT GENERATED ALWAYS AS (CASE WHEN stage IN (3, 4) THEN next WHEN stage IN (5, 6) THEN position
                                                    WHEN stage = 9 THEN lease_until WHEN stage = 10 THEN seq
                                                    ELSE ready_position END) STORED,
    KEY shelf (consumer, shelf, line, turn)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- How it ended. A row here is the token of retention.
CREATE TABLE IF NOT EXISTS {{done}} (
    seq        BIGINT NOT NULL PRIMARY KEY,
    consumer   VARBINARY(64) NOT NULL,
    done_at    BIGINT NOT NULL,
    runs       INT NOT NULL,
    handler    BLOB NOT NULL,
    revision   INT NOT NULL,
    superseded TINYINT NOT NULL,
    discarded  TINYINT NOT NULL,
    note       VARBINARY(2000) NOT NULL,
    fence      BIGINT NOT NULL,
    last_seen  BIGINT NOT NULL,
    purged     TINYINT NOT NULL,
    KEY done_at (consumer, purged, done_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- One row per group that has a head or waits for one: the lock that makes order.
CREATE TABLE IF NOT EXISTS {{lane}} (
    consumer VARBINARY(64) NOT NULL,
    grp      VARBINARY(1020) NOT NULL,
    head     BIGINT,
    position BIGINT NOT NULL,
    PRIMARY KEY (consumer, grp),
    KEY vacant (consumer, head, grp)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- What operators did.
CREATE TABLE IF NOT EXISTS {{audit}} (
    entry    BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at       BIGINT NOT NULL,
    actor    BLOB NOT NULL,
    action   VARBINARY(64) NOT NULL,
    reason   VARBINARY(2000) NOT NULL,
    consumer VARBINARY(64) NOT NULL,
    source   VARBINARY(1020) NOT NULL,
    id       VARBINARY(1020) NOT NULL,
    detail   BLOB NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Running totals, written by each process every few seconds.
CREATE TABLE IF NOT EXISTS {{total}} (
    consumer VARBINARY(64) NOT NULL,
    topic    VARBINARY(1020) NOT NULL,
    name     VARBINARY(64) NOT NULL,
    n        BIGINT NOT NULL,
    PRIMARY KEY (consumer, topic, name)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Topics that no worker may handle.
CREATE TABLE IF NOT EXISTS {{pause}} (
    consumer VARBINARY(64) NOT NULL,
    topic    VARBINARY(1020) NOT NULL,
    at       BIGINT NOT NULL,
    actor    BLOB NOT NULL,
    reason   VARBINARY(2000) NOT NULL,
    PRIMARY KEY (consumer, topic)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- All that is known of each message, for people who look with SQL.
CREATE OR REPLACE VIEW {{record}} AS
SELECT m.seq, CONVERT(m.consumer USING utf8mb4) AS consumer, CONVERT(m.source USING utf8mb4) AS source,
       CONVERT(m.id USING utf8mb4) AS id, CONVERT(m.grp USING utf8mb4) AS grp, CONVERT(m.topic USING utf8mb4) AS topic,
       CASE WHEN d.seq IS NOT NULL THEN 'done' WHEN w.stage = 1 THEN 'seen' WHEN w.stage = 10 THEN 'dead' ELSE 'processing' END AS state,
       CASE w.stage WHEN 1 THEN 'seen' WHEN 2 THEN 'idle' WHEN 3 THEN 'scheduled' WHEN 4 THEN 'deferred'
                    WHEN 5 THEN 'arrived' WHEN 6 THEN 'queued' WHEN 7 THEN 'ready' WHEN 8 THEN 'suspect'
                    WHEN 9 THEN 'leased' WHEN 10 THEN 'dead' WHEN 11 THEN 'parked' END AS stage,
       w.attempt, w.lost, TIMESTAMPADD(MICROSECOND, w.next, '1970-01-01 00:00:00.000000') AS next,
       CONVERT(w.owner USING utf8mb4) AS owner, w.fence,
       TIMESTAMPADD(MICROSECOND, w.lease_until, '1970-01-01 00:00:00.000000') AS lease_until,
       CONVERT(w.last_error USING utf8mb4) AS last_error,
       TIMESTAMPADD(MICROSECOND, m.first_seen, '1970-01-01 00:00:00.000000') AS first_seen,
       TIMESTAMPADD(MICROSECOND, COALESCE(w.last_seen, d.last_seen), '1970-01-01 00:00:00.000000') AS last_seen, m.revision,
       TIMESTAMPADD(MICROSECOND, d.done_at, '1970-01-01 00:00:00.000000') AS done_at,
       d.runs, CONVERT(d.handler USING utf8mb4) AS handler, d.superseded, d.discarded, CONVERT(d.note USING utf8mb4) AS note,
       TIMESTAMPADD(MICROSECOND, m.occurred_at, '1970-01-01 00:00:00.000000') AS occurred_at,
       TIMESTAMPADD(MICROSECOND, m.due_at, '1970-01-01 00:00:00.000000') AS due_at,
       TIMESTAMPADD(MICROSECOND, m.expires_at, '1970-01-01 00:00:00.000000') AS expires_at,
       CONVERT(m.correlation_id USING utf8mb4) AS correlation_id, CONVERT(m.causation_id USING utf8mb4) AS causation_id,
       CONVERT(m.headers USING utf8mb4) AS headers, m.payload
FROM {{message}} m
LEFT JOIN {{work}} w ON w.seq = m.seq
LEFT JOIN {{done}} d ON d.seq = m.seq;
