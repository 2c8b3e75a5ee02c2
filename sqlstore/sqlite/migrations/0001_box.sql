-- One table set: facts, work, outcomes. See docs/ARCHITECTURE.md.

-- Numbers messages, positions within groups, and turns to be claimed.
CREATE TABLE IF NOT EXISTS {{sequence}} (n INTEGER NOT NULL);

INSERT INTO {{sequence}} (n) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM {{sequence}});

-- What arrived. The unique key is the deduplication.
CREATE TABLE IF NOT EXISTS {{message}} (
    seq            INTEGER PRIMARY KEY,
    consumer       TEXT NOT NULL,
    source         TEXT NOT NULL,
    id             TEXT NOT NULL,
    grp            TEXT NOT NULL,
    topic          TEXT NOT NULL,
    payload        BLOB,
    headers        TEXT,
    hash           BLOB,
    hash_alg       TEXT NOT NULL,
    digest         BLOB,
    due_at         INTEGER,
    expires_at     INTEGER,
    occurred_at    INTEGER,
    correlation_id TEXT NOT NULL,
    causation_id   TEXT NOT NULL,
    first_seen     INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    UNIQUE (consumer, source, id)
);

-- What is still to do. Rows are small and go when the message is done.
-- stage: 1 seen, 2 idle, 3 scheduled, 4 deferred, 5 arrived, 6 queued, 7 ready,
-- 8 suspect, 9 leased, 10 dead, 11 parked.
CREATE TABLE IF NOT EXISTS {{work}} (
    seq            INTEGER PRIMARY KEY,
    consumer       TEXT NOT NULL,
    topic          TEXT NOT NULL,
    grp            TEXT NOT NULL,
    stage          INTEGER NOT NULL,
    position       INTEGER NOT NULL,
    ready_position INTEGER NOT NULL,
    attempt        INTEGER NOT NULL,
    lost           INTEGER NOT NULL,
    due            INTEGER,
    retry          INTEGER,
    next           INTEGER,
    expires        INTEGER,
    owner          TEXT NOT NULL,
    fence          INTEGER NOT NULL,
    lease_until    INTEGER,
    guard          INTEGER NOT NULL,
    revision       INTEGER NOT NULL,
    last_error     TEXT NOT NULL,
    last_seen      INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS {{prefix}}_work_ready ON {{work}} (consumer, ready_position) WHERE stage = 7;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_suspect ON {{work}} (consumer, ready_position) WHERE stage = 8;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_next ON {{work}} (consumer, next) WHERE stage IN (3, 4);
CREATE INDEX IF NOT EXISTS {{prefix}}_work_lease ON {{work}} (consumer, lease_until) WHERE stage = 9;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_arrived ON {{work}} (consumer, grp, position) WHERE stage = 5;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_queued ON {{work}} (consumer, grp, position) WHERE stage = 6;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_dead ON {{work}} (consumer, seq) WHERE stage = 10;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_parked ON {{work}} (consumer, topic) WHERE stage = 11;

-- How it ended. A row here is the token of retention.
CREATE TABLE IF NOT EXISTS {{done}} (
    seq        INTEGER PRIMARY KEY,
    consumer   TEXT NOT NULL,
    done_at    INTEGER NOT NULL,
    runs       INTEGER NOT NULL,
    handler    TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    superseded INTEGER NOT NULL,
    discarded  INTEGER NOT NULL,
    note       TEXT NOT NULL,
    fence      INTEGER NOT NULL,
    last_seen  INTEGER NOT NULL,
    purged     INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS {{prefix}}_done_at ON {{done}} (consumer, purged, done_at);

-- One row per group that has a head or waits for one: the lock that makes order.
CREATE TABLE IF NOT EXISTS {{lane}} (
    consumer TEXT NOT NULL,
    grp      TEXT NOT NULL,
    head     INTEGER,
    position INTEGER NOT NULL,
    PRIMARY KEY (consumer, grp)
);

CREATE INDEX IF NOT EXISTS {{prefix}}_lane_vacant ON {{lane}} (consumer, grp) WHERE head IS NULL;

-- What operators did.
CREATE TABLE IF NOT EXISTS {{audit}} (
    entry    INTEGER PRIMARY KEY AUTOINCREMENT,
    at       INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    action   TEXT NOT NULL,
    reason   TEXT NOT NULL,
    consumer TEXT NOT NULL,
    source   TEXT NOT NULL,
    id       TEXT NOT NULL,
    detail   TEXT NOT NULL
);

-- Running totals, written by each process every few seconds.
CREATE TABLE IF NOT EXISTS {{total}} (
    consumer TEXT NOT NULL,
    topic    TEXT NOT NULL,
    name     TEXT NOT NULL,
    n        INTEGER NOT NULL,
    PRIMARY KEY (consumer, topic, name)
);

-- Topics that no worker may handle.
CREATE TABLE IF NOT EXISTS {{pause}} (
    consumer TEXT NOT NULL,
    topic    TEXT NOT NULL,
    at       INTEGER NOT NULL,
    actor    TEXT NOT NULL,
    reason   TEXT NOT NULL,
    PRIMARY KEY (consumer, topic)
);

-- All that is known of each message, for people who look with SQL.
CREATE VIEW IF NOT EXISTS {{record}} AS
SELECT m.seq, m.consumer, m.source, m.id, m.grp, m.topic,
       CASE WHEN d.seq IS NOT NULL THEN 'done' WHEN w.stage = 1 THEN 'seen' WHEN w.stage = 10 THEN 'dead' ELSE 'processing' END AS state,
       CASE w.stage WHEN 1 THEN 'seen' WHEN 2 THEN 'idle' WHEN 3 THEN 'scheduled' WHEN 4 THEN 'deferred'
                    WHEN 5 THEN 'arrived' WHEN 6 THEN 'queued' WHEN 7 THEN 'ready' WHEN 8 THEN 'suspect'
                    WHEN 9 THEN 'leased' WHEN 10 THEN 'dead' WHEN 11 THEN 'parked' END AS stage,
       w.attempt, w.lost, w.next, w.owner, w.fence, w.lease_until, w.last_error,
       m.first_seen, COALESCE(w.last_seen, d.last_seen) AS last_seen, m.revision,
       d.done_at, d.runs, d.handler, d.superseded, d.discarded, d.note,
       m.occurred_at, m.due_at, m.expires_at, m.correlation_id, m.causation_id, m.headers, m.payload
FROM {{message}} m
LEFT JOIN {{work}} w ON w.seq = m.seq
LEFT JOIN {{done}} d ON d.seq = m.seq;
