-- One table set: facts, work, outcomes. See docs/ARCHITECTURE.md.

-- Numbers messages, positions within groups, and turns to be claimed.
CREATE SEQUENCE IF NOT EXISTS {{sequence}};

-- What arrived. The unique key is the deduplication. In each table the columns
-- are in the order of their width, so that nothing is lost between them.
CREATE TABLE IF NOT EXISTS {{message}} (
    seq            bigint PRIMARY KEY,
    first_seen     timestamptz NOT NULL,
    due_at         timestamptz,
    expires_at     timestamptz,
    occurred_at    timestamptz,
    revision       integer NOT NULL,
    payload        bytea,
    consumer       text COLLATE "C" NOT NULL,
    source         text COLLATE "C" NOT NULL,
    id             text COLLATE "C" NOT NULL,
    grp            text COLLATE "C" NOT NULL,
    topic          text COLLATE "C" NOT NULL,
    hash_alg       text,
    correlation_id text,
    causation_id   text,
    headers        jsonb,
    hash           bytea,
    digest         bytea,
    UNIQUE (consumer, source, id)
);

-- What is still to do. Rows are small and go when the message is done. Each is
-- changed once or twice: with room for that on its page, a change writes half as
-- much. An emptied table is not cut off, or it would be planned as a tiny one.
-- stage: 1 seen, 2 idle, 3 scheduled, 4 deferred, 5 arrived, 6 queued, 7 ready,
-- 8 suspect, 9 leased, 10 dead, 11 parked. place is the stage by which the indexes
-- go: a claim leaves it as it was, and so writes no index.
CREATE TABLE IF NOT EXISTS {{work}} (
    seq            bigint PRIMARY KEY,
    position       bigint, -- NULL: seq
    ready_position bigint NOT NULL,
    last_seen      timestamptz, -- NULL: first_seen
    due            timestamptz,
    retry          timestamptz,
    next           timestamptz,
    expires        timestamptz,
    attempt        integer NOT NULL,
    lost           integer, -- NULL: 0
    revision       integer NOT NULL,
    guard          smallint NOT NULL,
    place          smallint NOT NULL,
    consumer       text COLLATE "C" NOT NULL,
    topic          text COLLATE "C" NOT NULL,
    grp            text COLLATE "C" NOT NULL,
    last_error     text NOT NULL,
    -- A claim changes what follows. What stays the same on both sides of a change
    -- is not written to the log.
    stage          smallint NOT NULL,
    fence          integer NOT NULL,
    lease_until    timestamptz,
    owner          text COLLATE "C" NOT NULL
) WITH (fillfactor = 45, vacuum_truncate = off);

CREATE INDEX IF NOT EXISTS {{prefix}}_work_ready ON {{work}} (consumer, ready_position) WHERE place = 7;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_suspect ON {{work}} (consumer, ready_position) WHERE place = 8;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_next ON {{work}} (consumer, next) WHERE place IN (3, 4);
CREATE INDEX IF NOT EXISTS {{prefix}}_work_leased ON {{work}} (consumer, seq) WHERE place = 9;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_arrived ON {{work}} (consumer, grp, position) WHERE place = 5;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_queued ON {{work}} (consumer, grp, position) WHERE place = 6;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_dead ON {{work}} (consumer, seq) WHERE place = 10;
CREATE INDEX IF NOT EXISTS {{prefix}}_work_parked ON {{work}} (consumer, topic) WHERE place = 11;

-- Where to look for leases that may have ended: each claim, the first and the last
-- turn of what it leased, and a time before which none of these leases ends. Those
-- of other ways to a lease are at place 9.
CREATE TABLE IF NOT EXISTS {{claim}} (
    consumer text COLLATE "C" NOT NULL,
    until    timestamptz NOT NULL,
    low      bigint NOT NULL,
    high     bigint NOT NULL,
    PRIMARY KEY (consumer, until, low)
);

-- How it ended. A row here is the token of retention.
CREATE TABLE IF NOT EXISTS {{done}} (
    seq        bigint PRIMARY KEY,
    done_at    timestamptz NOT NULL,
    last_seen  timestamptz, -- NULL: first_seen
    fence      integer NOT NULL,
    runs       integer, -- NULL: 1
    revision   integer NOT NULL,
    superseded boolean NOT NULL,
    discarded  boolean NOT NULL,
    purged     boolean NOT NULL,
    consumer   text COLLATE "C" NOT NULL,
    handler    text NOT NULL,
    note       text NOT NULL
);

CREATE INDEX IF NOT EXISTS {{prefix}}_done_at ON {{done}} (consumer, purged, done_at);

-- One row per group that has a head or waits for one: the lock that makes order.
CREATE TABLE IF NOT EXISTS {{lane}} (
    consumer text COLLATE "C" NOT NULL,
    grp      text COLLATE "C" NOT NULL,
    head     bigint,
    position bigint NOT NULL,
    PRIMARY KEY (consumer, grp)
);

CREATE INDEX IF NOT EXISTS {{prefix}}_lane_vacant ON {{lane}} (consumer, grp) WHERE head IS NULL;

-- What operators did.
CREATE TABLE IF NOT EXISTS {{audit}} (
    entry    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL,
    actor    text NOT NULL,
    action   text NOT NULL,
    reason   text NOT NULL,
    consumer text COLLATE "C" NOT NULL,
    source   text COLLATE "C" NOT NULL,
    id       text COLLATE "C" NOT NULL,
    detail   text NOT NULL
);

-- Running totals, written by each process every few seconds.
CREATE TABLE IF NOT EXISTS {{total}} (
    consumer text COLLATE "C" NOT NULL,
    topic    text COLLATE "C" NOT NULL,
    name     text COLLATE "C" NOT NULL,
    n        bigint NOT NULL,
    PRIMARY KEY (consumer, topic, name)
);

-- Topics that no worker may handle.
CREATE TABLE IF NOT EXISTS {{pause}} (
    consumer text COLLATE "C" NOT NULL,
    topic    text COLLATE "C" NOT NULL,
    at       timestamptz NOT NULL,
    actor    text NOT NULL,
    reason   text NOT NULL,
    PRIMARY KEY (consumer, topic)
);

-- All that is known of each message, for people who look with SQL.
CREATE OR REPLACE VIEW {{record}} AS
SELECT m.seq, m.consumer, m.source, m.id, m.grp, m.topic,
       CASE WHEN d.seq IS NOT NULL THEN 'done' WHEN w.stage = 1 THEN 'seen' WHEN w.stage = 10 THEN 'dead' ELSE 'processing' END AS state,
       CASE w.stage WHEN 1 THEN 'seen' WHEN 2 THEN 'idle' WHEN 3 THEN 'scheduled' WHEN 4 THEN 'deferred'
                    WHEN 5 THEN 'arrived' WHEN 6 THEN 'queued' WHEN 7 THEN 'ready' WHEN 8 THEN 'suspect'
                    WHEN 9 THEN 'leased' WHEN 10 THEN 'dead' WHEN 11 THEN 'parked' END AS stage,
       w.attempt, CASE WHEN w.seq IS NOT NULL THEN COALESCE(w.lost, 0) END AS lost, w.next, w.owner, w.fence, w.lease_until, w.last_error,
       m.first_seen, COALESCE(w.last_seen, d.last_seen, m.first_seen) AS last_seen, m.revision,
       d.done_at, CASE WHEN d.seq IS NOT NULL THEN COALESCE(d.runs, 1) END AS runs, d.handler, d.superseded, d.discarded, d.note,
       m.occurred_at, m.due_at, m.expires_at, COALESCE(m.correlation_id, '') AS correlation_id, COALESCE(m.causation_id, '') AS causation_id, m.headers, m.payload
FROM {{message}} m
LEFT JOIN {{work}} w ON w.seq = m.seq
LEFT JOIN {{done}} d ON d.seq = m.seq;
