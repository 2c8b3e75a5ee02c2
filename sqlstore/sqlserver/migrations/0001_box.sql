-- One table set: facts, work, outcomes. See docs/ARCHITECTURE.md.
-- Names are bytes, so that no collation makes two of them one. Times are
-- microseconds since 1970 in UTC. No table's row locks ever become a table lock,
-- which would stop everyone else.

-- Numbers messages, positions within groups, and turns to be claimed.
IF OBJECT_ID(N'{{sequence}}') IS NULL
CREATE SEQUENCE {{sequence}} AS BIGINT START WITH 1 INCREMENT BY 1 CACHE 1000;

-- What arrived. The unique key is the deduplication. It can be longer than the 900
-- bytes that a clustered key may have.
IF OBJECT_ID(N'{{message}}') IS NULL
CREATE TABLE {{message}} (
    seq            BIGINT NOT NULL PRIMARY KEY CLUSTERED,
    consumer       VARBINARY(64) NOT NULL,
    source         VARBINARY(1020) NOT NULL,
    id             VARBINARY(1020) NOT NULL,
    grp            VARBINARY(1020) NOT NULL,
    topic          VARBINARY(1020) NOT NULL,
    payload        VARBINARY(MAX),
    headers        VARBINARY(MAX),
    hash           VARBINARY(512),
    hash_alg       VARBINARY(32) NOT NULL,
    digest         VARBINARY(32),
    due_at         BIGINT,
    expires_at     BIGINT,
    occurred_at    BIGINT,
    correlation_id VARBINARY(1020) NOT NULL,
    causation_id   VARBINARY(1020) NOT NULL,
    first_seen     BIGINT NOT NULL,
    revision       INT NOT NULL
);

IF INDEXPROPERTY(OBJECT_ID(N'{{message}}'), N'{{prefix}}_message_key', 'IndexID') IS NULL
CREATE UNIQUE NONCLUSTERED INDEX {{prefix}}_message_key ON {{message}} (consumer, source, id);

-- What is still to do. Rows are small and go when the message is done.
-- stage: 1 seen, 2 idle, 3 scheduled, 4 deferred, 5 arrived, 6 queued, 7 ready,
-- 8 suspect, 9 leased, 10 dead, 11 parked.
IF OBJECT_ID(N'{{work}}') IS NULL
CREATE TABLE {{work}} (
    seq            BIGINT NOT NULL PRIMARY KEY CLUSTERED,
    consumer       VARBINARY(64) NOT NULL,
    topic          VARBINARY(1020) NOT NULL,
    grp            VARBINARY(1020) NOT NULL,
    stage          SMALLINT NOT NULL,
    position       BIGINT NOT NULL,
    ready_position BIGINT NOT NULL,
    attempt        INT NOT NULL,
    lost           INT NOT NULL,
    due            BIGINT,
    retry          BIGINT,
    next           BIGINT,
    expires        BIGINT,
    owner          VARBINARY(MAX) NOT NULL,
    fence          BIGINT NOT NULL,
    lease_until    BIGINT,
    guard          SMALLINT NOT NULL,
    revision       INT NOT NULL,
    last_error     VARBINARY(2000) NOT NULL,
    last_seen      BIGINT NOT NULL
);

IF INDEXPROPERTY(OBJECT_ID(N'{{work}}'), N'{{prefix}}_work_ready', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_work_ready ON {{work}} (consumer, ready_position) WHERE stage = 7;

IF INDEXPROPERTY(OBJECT_ID(N'{{work}}'), N'{{prefix}}_work_suspect', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_work_suspect ON {{work}} (consumer, ready_position) WHERE stage = 8;

IF INDEXPROPERTY(OBJECT_ID(N'{{work}}'), N'{{prefix}}_work_next', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_work_next ON {{work}} (consumer, next) WHERE stage IN (3, 4);

IF INDEXPROPERTY(OBJECT_ID(N'{{work}}'), N'{{prefix}}_work_lease', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_work_lease ON {{work}} (consumer, lease_until) WHERE stage = 9;

IF INDEXPROPERTY(OBJECT_ID(N'{{work}}'), N'{{prefix}}_work_arrived', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_work_arrived ON {{work}} (consumer, grp, position) WHERE stage = 5;

IF INDEXPROPERTY(OBJECT_ID(N'{{work}}'), N'{{prefix}}_work_queued', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_work_queued ON {{work}} (consumer, grp, position) WHERE stage = 6;

IF INDEXPROPERTY(OBJECT_ID(N'{{work}}'), N'{{prefix}}_work_dead', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_work_dead ON {{work}} (consumer, seq) WHERE stage = 10;

IF INDEXPROPERTY(OBJECT_ID(N'{{work}}'), N'{{prefix}}_work_parked', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_work_parked ON {{work}} (consumer, topic, ready_position) WHERE stage = 11;

-- How it ended. A row here is the token of retention.
IF OBJECT_ID(N'{{done}}') IS NULL
CREATE TABLE {{done}} (
    seq        BIGINT NOT NULL PRIMARY KEY CLUSTERED,
    consumer   VARBINARY(64) NOT NULL,
    done_at    BIGINT NOT NULL,
    runs       INT NOT NULL,
    handler    VARBINARY(MAX) NOT NULL,
    revision   INT NOT NULL,
    superseded BIT NOT NULL,
    discarded  BIT NOT NULL,
    note       VARBINARY(2000) NOT NULL,
    fence      BIGINT NOT NULL,
    last_seen  BIGINT NOT NULL,
    purged     BIT NOT NULL
);

IF INDEXPROPERTY(OBJECT_ID(N'{{done}}'), N'{{prefix}}_done_at', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_done_at ON {{done}} (consumer, purged, done_at);

-- One row per group that has a head or waits for one: the lock that makes order.
IF OBJECT_ID(N'{{lane}}') IS NULL
CREATE TABLE {{lane}} (
    n        BIGINT IDENTITY NOT NULL PRIMARY KEY CLUSTERED,
    consumer VARBINARY(64) NOT NULL,
    grp      VARBINARY(1020) NOT NULL,
    head     BIGINT,
    position BIGINT NOT NULL
);

IF INDEXPROPERTY(OBJECT_ID(N'{{lane}}'), N'{{prefix}}_lane_key', 'IndexID') IS NULL
CREATE UNIQUE NONCLUSTERED INDEX {{prefix}}_lane_key ON {{lane}} (consumer, grp);

IF INDEXPROPERTY(OBJECT_ID(N'{{lane}}'), N'{{prefix}}_lane_vacant', 'IndexID') IS NULL
CREATE INDEX {{prefix}}_lane_vacant ON {{lane}} (consumer, grp) WHERE head IS NULL;

-- What operators did.
IF OBJECT_ID(N'{{audit}}') IS NULL
CREATE TABLE {{audit}} (
    entry    BIGINT IDENTITY NOT NULL PRIMARY KEY CLUSTERED,
    at       BIGINT NOT NULL,
    actor    VARBINARY(MAX) NOT NULL,
    action   VARBINARY(64) NOT NULL,
    reason   VARBINARY(2000) NOT NULL,
    consumer VARBINARY(64) NOT NULL,
    source   VARBINARY(1020) NOT NULL,
    id       VARBINARY(1020) NOT NULL,
    detail   VARBINARY(MAX) NOT NULL
);

-- Running totals, written by each process every few seconds.
IF OBJECT_ID(N'{{total}}') IS NULL
CREATE TABLE {{total}} (
    consumer VARBINARY(64) NOT NULL,
    topic    VARBINARY(1020) NOT NULL,
    name     VARBINARY(64) NOT NULL,
    n        BIGINT NOT NULL,
    PRIMARY KEY NONCLUSTERED (consumer, topic, name)
);

-- Topics that no worker may handle.
IF OBJECT_ID(N'{{pause}}') IS NULL
CREATE TABLE {{pause}} (
    consumer VARBINARY(64) NOT NULL,
    topic    VARBINARY(1020) NOT NULL,
    at       BIGINT NOT NULL,
    actor    VARBINARY(MAX) NOT NULL,
    reason   VARBINARY(2000) NOT NULL,
    PRIMARY KEY NONCLUSTERED (consumer, topic)
);

IF EXISTS (SELECT 1 FROM sys.tables WHERE object_id = OBJECT_ID(N'{{message}}') AND lock_escalation <> 1)
ALTER TABLE {{message}} SET (LOCK_ESCALATION = DISABLE);

IF EXISTS (SELECT 1 FROM sys.tables WHERE object_id = OBJECT_ID(N'{{work}}') AND lock_escalation <> 1)
ALTER TABLE {{work}} SET (LOCK_ESCALATION = DISABLE);

IF EXISTS (SELECT 1 FROM sys.tables WHERE object_id = OBJECT_ID(N'{{done}}') AND lock_escalation <> 1)
ALTER TABLE {{done}} SET (LOCK_ESCALATION = DISABLE);

IF EXISTS (SELECT 1 FROM sys.tables WHERE object_id = OBJECT_ID(N'{{lane}}') AND lock_escalation <> 1)
ALTER TABLE {{lane}} SET (LOCK_ESCALATION = DISABLE);

-- All that is known of each message, for people who look with SQL. Names beyond
-- ASCII are readable in a database whose collation is UTF-8.
IF OBJECT_ID(N'{{record}}') IS NULL
EXEC(N'CREATE VIEW {{record}} AS
SELECT m.seq, CONVERT(VARCHAR(64), m.consumer) AS consumer, CONVERT(VARCHAR(1020), m.source) AS source,
       CONVERT(VARCHAR(1020), m.id) AS id, CONVERT(VARCHAR(1020), m.grp) AS grp, CONVERT(VARCHAR(1020), m.topic) AS topic,
       CASE WHEN d.seq IS NOT NULL THEN ''done'' WHEN w.stage = 1 THEN ''seen'' WHEN w.stage = 10 THEN ''dead'' ELSE ''processing'' END AS state,
       CASE w.stage WHEN 1 THEN ''seen'' WHEN 2 THEN ''idle'' WHEN 3 THEN ''scheduled'' WHEN 4 THEN ''deferred''
                    WHEN 5 THEN ''arrived'' WHEN 6 THEN ''queued'' WHEN 7 THEN ''ready'' WHEN 8 THEN ''suspect''
                    WHEN 9 THEN ''leased'' WHEN 10 THEN ''dead'' WHEN 11 THEN ''parked'' END AS stage,
       w.attempt, w.lost, DATEADD(SECOND, w.next / 1000000 % 86400, DATEADD(DAY, w.next / 86400000000, CAST(''1970-01-01'' AS DATETIME2(0)))) AS next,
       CONVERT(VARCHAR(1020), w.owner) AS owner, w.fence,
       DATEADD(SECOND, w.lease_until / 1000000 % 86400, DATEADD(DAY, w.lease_until / 86400000000, CAST(''1970-01-01'' AS DATETIME2(0)))) AS lease_until,
       CONVERT(VARCHAR(2000), w.last_error) AS last_error,
       DATEADD(SECOND, m.first_seen / 1000000 % 86400, DATEADD(DAY, m.first_seen / 86400000000, CAST(''1970-01-01'' AS DATETIME2(0)))) AS first_seen,
       DATEADD(SECOND, COALESCE(w.last_seen, d.last_seen) / 1000000 % 86400,
               DATEADD(DAY, COALESCE(w.last_seen, d.last_seen) / 86400000000, CAST(''1970-01-01'' AS DATETIME2(0)))) AS last_seen, m.revision,
       DATEADD(SECOND, d.done_at / 1000000 % 86400, DATEADD(DAY, d.done_at / 86400000000, CAST(''1970-01-01'' AS DATETIME2(0)))) AS done_at,
       d.runs, CONVERT(VARCHAR(1020), d.handler) AS handler, d.superseded, d.discarded, CONVERT(VARCHAR(2000), d.note) AS note,
       DATEADD(SECOND, m.occurred_at / 1000000 % 86400, DATEADD(DAY, m.occurred_at / 86400000000, CAST(''1970-01-01'' AS DATETIME2(0)))) AS occurred_at,
       DATEADD(SECOND, m.due_at / 1000000 % 86400, DATEADD(DAY, m.due_at / 86400000000, CAST(''1970-01-01'' AS DATETIME2(0)))) AS due_at,
       DATEADD(SECOND, m.expires_at / 1000000 % 86400, DATEADD(DAY, m.expires_at / 86400000000, CAST(''1970-01-01'' AS DATETIME2(0)))) AS expires_at,
       CONVERT(VARCHAR(1020), m.correlation_id) AS correlation_id, CONVERT(VARCHAR(1020), m.causation_id) AS causation_id,
       CONVERT(VARCHAR(MAX), m.headers) AS headers, m.payload
FROM {{message}} m
LEFT JOIN {{work}} w ON w.seq = m.seq
LEFT JOIN {{done}} d ON d.seq = m.seq');
