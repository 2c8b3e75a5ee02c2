-- The statements of SQL Server. Rows come as one JSON array of arrays. Texts and
-- bytes come in a second parameter, one after the other; in the rows are their
-- places there, start * 100000000 + length. What skips locked rows names its locks in full,
-- so that neither the isolation of a caller nor row versions change them, and seeks,
-- so that no other row is locked on the way. What may wait says for how long; such
-- a setting ends with the statement.

-- name: server
-- Empty if it will do.
SET NOCOUNT ON; DECLARE @says NVARCHAR(200) = N'';
BEGIN TRY
    EXEC(N'DECLARE @n INT; SELECT @n = COUNT(*) FROM OPENJSON(N''[1]'');');
END TRY
BEGIN CATCH
    SET @says = CONCAT(N'compatibility level ', (SELECT compatibility_level FROM sys.databases WHERE database_id = DB_ID()));
END CATCH;
SELECT @says;

-- name: clock
SELECT DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME());

-- name: positions
SELECT NEXT VALUE FOR {{sequence}} FROM STRING_SPLIT(CONCAT('n', REPLICATE(CAST(',n' AS VARCHAR(MAX)), @p1 - 1)), ',');

-- name: hold_key
-- A caller's transaction announces its keys, so that nobody has to wait on them
-- unawares. The lock goes with the transaction.
DECLARE @resource NVARCHAR(255) = CONCAT(N'postroom ', @p1), @got INT;
EXEC @got = sp_getapplock @Resource = @resource, @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 0;
SELECT CASE WHEN @got >= 0 THEN 1 ELSE 0 END;

-- name: held_keys
-- Which of these keys sit in somebody's open transaction.
SELECT i.k FROM OPENJSON(@p1) WITH (k BIGINT '$[0]') AS i
WHERE APPLOCK_TEST('public', CONCAT(N'postroom ', i.k), 'Exclusive', 'Session') = 0;

-- name: insert_message
-- What is there is left out; what an open transaction has stored is waited for. A
-- key that somebody stores between the look and the insert undoes the insert, and
-- the next look finds it. The rows are told after it, not while it goes on.
SET NOCOUNT ON; SET XACT_ABORT OFF; SET LOCK_TIMEOUT {{wait}};
DECLARE @new TABLE (seq BIGINT, consumer VARBINARY(64), source VARBINARY(1020), id VARBINARY(1020));
DECLARE @tries INT = 10;
WHILE @tries > 0
BEGIN
    BEGIN TRY
        INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, headers, hash, hash_alg, digest, due_at, expires_at,
            occurred_at, correlation_id, causation_id, first_seen, revision)
        OUTPUT inserted.seq, inserted.consumer, inserted.source, inserted.id INTO @new
        SELECT i.seq, SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000), SUBSTRING(@p2, i.source / 100000000, i.source % 100000000),
               SUBSTRING(@p2, i.id / 100000000, i.id % 100000000),
               SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000), SUBSTRING(@p2, i.topic / 100000000, i.topic % 100000000),
               SUBSTRING(@p2, i.payload / 100000000, i.payload % 100000000),
               SUBSTRING(@p2, i.headers / 100000000, i.headers % 100000000), SUBSTRING(@p2, i.hash / 100000000, i.hash % 100000000),
               SUBSTRING(@p2, i.hash_alg / 100000000, i.hash_alg % 100000000),
               SUBSTRING(@p2, i.digest / 100000000, i.digest % 100000000), i.due_at, i.expires_at, i.occurred_at,
               SUBSTRING(@p2, i.correlation_id / 100000000, i.correlation_id % 100000000),
               SUBSTRING(@p2, i.causation_id / 100000000, i.causation_id % 100000000),
               DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()), 1
        FROM OPENJSON(@p1) WITH (seq BIGINT '$[0]', consumer BIGINT '$[1]', source BIGINT '$[2]', id BIGINT '$[3]',
            grp BIGINT '$[4]', topic BIGINT '$[5]', payload BIGINT '$[6]', headers BIGINT '$[7]',
            hash BIGINT '$[8]', hash_alg BIGINT '$[9]', digest BIGINT '$[10]', due_at BIGINT '$[11]',
            expires_at BIGINT '$[12]', occurred_at BIGINT '$[13]', correlation_id BIGINT '$[14]', causation_id BIGINT '$[15]') AS i
        WHERE NOT EXISTS (SELECT 1 FROM {{message}} m WITH (READCOMMITTEDLOCK, FORCESEEK)
            WHERE m.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
              AND m.source = CAST(SUBSTRING(@p2, i.source / 100000000, i.source % 100000000) AS VARBINARY(1020))
              AND m.id = CAST(SUBSTRING(@p2, i.id / 100000000, i.id % 100000000) AS VARBINARY(1020))
        );
        SET @tries = 0;
    END TRY
    BEGIN CATCH
        SET @tries = @tries - 1;
        IF ERROR_NUMBER() NOT IN (2601, 2627) OR XACT_STATE() <> 1 OR @tries = 0 BEGIN THROW; END;
    END CATCH;
END;
SELECT seq, consumer, source, id, DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) FROM @new;

-- name: lookup
-- What is there now, also in a transaction that otherwise reads the past.
SET LOCK_TIMEOUT {{wait}}; SELECT m.consumer, m.source, m.id, m.seq, m.topic, m.grp, m.revision, m.hash, m.hash_alg, m.digest,
       DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()),
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM OPENJSON(@p1) WITH (consumer BIGINT '$[0]', source BIGINT '$[1]', id BIGINT '$[2]') AS i
JOIN {{message}} m WITH (READCOMMITTEDLOCK, FORCESEEK)
  ON m.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
  AND m.source = CAST(SUBSTRING(@p2, i.source / 100000000, i.source % 100000000) AS VARBINARY(1020))
  AND m.id = CAST(SUBSTRING(@p2, i.id / 100000000, i.id % 100000000) AS VARBINARY(1020))
LEFT JOIN {{work}} w WITH (READCOMMITTEDLOCK, FORCESEEK) ON w.seq = m.seq
LEFT JOIN {{done}} d WITH (READCOMMITTEDLOCK, FORCESEEK) ON d.seq = m.seq;

-- name: lock_work
SELECT w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())
FROM OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i
JOIN {{work}} w WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON w.seq = i.seq
ORDER BY w.seq;

-- name: exists_work
-- One at a time. A row that somebody has locked is there.
SET NOCOUNT ON; SET XACT_ABORT OFF; SET LOCK_TIMEOUT 0;
DECLARE @there BIGINT;
BEGIN TRY
    SELECT @there = seq FROM {{work}} WITH (READCOMMITTEDLOCK, FORCESEEK) WHERE seq = @p1;
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() <> 1222 BEGIN THROW; END;
    SET @there = @p1;
END CATCH;
SELECT @there WHERE @there IS NOT NULL;

-- name: lock_done
SELECT d.seq FROM OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i
JOIN {{done}} d WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK) ON d.seq = i.seq
ORDER BY d.seq;

-- name: insert_work
SET LOCK_TIMEOUT {{wait}};
INSERT INTO {{work}} (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, retry, next, expires, owner, fence,
    lease_until, guard, revision, last_error, last_seen)
SELECT i.seq, SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000), SUBSTRING(@p2, i.topic / 100000000, i.topic % 100000000),
       SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000),
       i.stage, i.position, i.ready_position, i.attempt, i.lost, i.due, i.retry, i.next, i.expires,
       SUBSTRING(@p2, i.owner / 100000000, i.owner % 100000000), i.fence, i.lease_until, i.guard, i.revision,
       SUBSTRING(@p2, i.last_error / 100000000, i.last_error % 100000000), i.last_seen
FROM OPENJSON(@p1) WITH (seq BIGINT '$[0]', consumer BIGINT '$[1]', topic BIGINT '$[2]', grp BIGINT '$[3]',
    stage SMALLINT '$[4]', position BIGINT '$[5]', ready_position BIGINT '$[6]', attempt INT '$[7]', lost INT '$[8]',
    due BIGINT '$[9]', retry BIGINT '$[10]', next BIGINT '$[11]', expires BIGINT '$[12]', owner BIGINT '$[13]',
    fence BIGINT '$[14]', lease_until BIGINT '$[15]', guard SMALLINT '$[16]', revision INT '$[17]',
    last_error BIGINT '$[18]', last_seen BIGINT '$[19]') AS i;

-- name: update_work
SET LOCK_TIMEOUT {{wait}}; UPDATE w
SET topic = SUBSTRING(@p2, i.topic / 100000000, i.topic % 100000000), grp = SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000), stage = i.stage,
    position = i.position, ready_position = i.ready_position, attempt = i.attempt, lost = i.lost, due = i.due, retry = i.retry,
    next = i.next, expires = i.expires, owner = SUBSTRING(@p2, i.owner / 100000000, i.owner % 100000000), fence = i.fence,
    lease_until = i.lease_until,
    guard = i.guard, revision = i.revision, last_error = SUBSTRING(@p2, i.last_error / 100000000, i.last_error % 100000000), last_seen = i.last_seen
FROM {{work}} w WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]', consumer BIGINT '$[1]', topic BIGINT '$[2]', grp BIGINT '$[3]',
    stage SMALLINT '$[4]', position BIGINT '$[5]', ready_position BIGINT '$[6]', attempt INT '$[7]', lost INT '$[8]',
    due BIGINT '$[9]', retry BIGINT '$[10]', next BIGINT '$[11]', expires BIGINT '$[12]', owner BIGINT '$[13]',
    fence BIGINT '$[14]', lease_until BIGINT '$[15]', guard SMALLINT '$[16]', revision INT '$[17]',
    last_error BIGINT '$[18]', last_seen BIGINT '$[19]') AS i ON i.seq = w.seq;

-- name: delete_work
SET LOCK_TIMEOUT {{wait}}; DELETE w FROM {{work}} w WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i ON i.seq = w.seq;

-- name: insert_done
SET LOCK_TIMEOUT {{wait}};
INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT i.seq, SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000), i.done_at, i.runs,
       SUBSTRING(@p2, i.handler / 100000000, i.handler % 100000000), i.revision,
       i.superseded, i.discarded, SUBSTRING(@p2, i.note / 100000000, i.note % 100000000), i.fence, i.last_seen, i.purged
FROM OPENJSON(@p1) WITH (seq BIGINT '$[0]', consumer BIGINT '$[1]', done_at BIGINT '$[2]', runs INT '$[3]', handler BIGINT '$[4]',
    revision INT '$[5]', superseded BIT '$[6]', discarded BIT '$[7]', note BIGINT '$[8]', fence BIGINT '$[9]',
    last_seen BIGINT '$[10]', purged BIT '$[11]') AS i;

-- name: delete_done
SET LOCK_TIMEOUT {{wait}}; DELETE d FROM {{done}} d WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i ON i.seq = d.seq;

-- name: delete_message
SET LOCK_TIMEOUT {{wait}}; DELETE m FROM {{message}} m WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i ON i.seq = m.seq;

-- name: update_content
SET LOCK_TIMEOUT {{wait}}; UPDATE m
SET revision = i.revision, grp = CASE WHEN i.regroup = 1 THEN SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000) ELSE m.grp END,
    topic = SUBSTRING(@p2, i.topic / 100000000, i.topic % 100000000), payload = SUBSTRING(@p2, i.payload / 100000000, i.payload % 100000000),
    headers = SUBSTRING(@p2, i.headers / 100000000, i.headers % 100000000), hash = SUBSTRING(@p2, i.hash / 100000000, i.hash % 100000000),
    hash_alg = SUBSTRING(@p2, i.hash_alg / 100000000, i.hash_alg % 100000000), digest = SUBSTRING(@p2, i.digest / 100000000, i.digest % 100000000),
    due_at = i.due_at, expires_at = i.expires_at, occurred_at = i.occurred_at,
    correlation_id = SUBSTRING(@p2, i.correlation_id / 100000000, i.correlation_id % 100000000),
    causation_id = SUBSTRING(@p2, i.causation_id / 100000000, i.causation_id % 100000000)
FROM {{message}} m WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]', revision INT '$[1]', regroup BIT '$[2]', grp BIGINT '$[3]', topic BIGINT '$[4]',
    payload BIGINT '$[5]', headers BIGINT '$[6]', hash BIGINT '$[7]', hash_alg BIGINT '$[8]',
    digest BIGINT '$[9]', due_at BIGINT '$[10]', expires_at BIGINT '$[11]', occurred_at BIGINT '$[12]',
    correlation_id BIGINT '$[13]', causation_id BIGINT '$[14]') AS i ON i.seq = m.seq;

-- name: adopt_hash
SET LOCK_TIMEOUT {{wait}};
UPDATE m SET hash = SUBSTRING(@p2, i.hash / 100000000, i.hash % 100000000), hash_alg = SUBSTRING(@p2, i.hash_alg / 100000000, i.hash_alg % 100000000)
FROM {{message}} m WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]', hash BIGINT '$[1]', hash_alg BIGINT '$[2]') AS i ON i.seq = m.seq
WHERE m.hash IS NULL;

-- name: touch_work
SET LOCK_TIMEOUT {{wait}}; UPDATE w SET last_seen = DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())
FROM {{work}} w WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i ON i.seq = w.seq
WHERE w.last_seen <= DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) - 1000000;

-- name: touch_done
SET LOCK_TIMEOUT {{wait}}; UPDATE d SET last_seen = DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())
FROM {{done}} d WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i ON i.seq = d.seq
WHERE d.last_seen <= DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) - 1000000;

-- name: vacate_lanes
SET LOCK_TIMEOUT {{wait}}; UPDATE l SET head = NULL
FROM {{lane}} l WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (consumer BIGINT '$[0]', grp BIGINT '$[1]', seq BIGINT '$[2]') AS i
  ON l.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
  AND l.grp = CAST(SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000) AS VARBINARY(1020))
WHERE l.head = i.seq;

-- name: lane_heads
SET LOCK_TIMEOUT {{wait}}; SELECT l.head FROM OPENJSON(@p1) WITH (consumer BIGINT '$[0]', grp BIGINT '$[1]', seq BIGINT '$[2]') AS i
JOIN {{lane}} l WITH (UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
  ON l.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
  AND l.grp = CAST(SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000) AS VARBINARY(1020))
WHERE l.head = i.seq
ORDER BY l.consumer, l.grp;

-- name: peek
-- One look at whether anything has to be made ready before a claim. What is locked
-- is not waited for. Topic by topic: a paused one may have a great many messages.
SET NOCOUNT ON; DECLARE @parked INT = 0, @topic VARBINARY(1020) = 0x, @next VARBINARY(1020);
WHILE @topic IS NOT NULL AND @parked = 0
BEGIN
    SET @next = NULL;
    SELECT TOP (1) @next = w.topic FROM {{work}} w WITH (READPAST, READCOMMITTEDLOCK, INDEX({{prefix}}_work_parked))
    WHERE w.consumer = @p1 AND w.stage = 11 AND w.topic > @topic ORDER BY w.topic;
    SET @topic = @next;
    IF @topic IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {{pause}} p WITH (READUNCOMMITTED) WHERE p.consumer = @p1 AND p.topic = @topic)
        SET @parked = 1;
END;
SELECT CASE WHEN EXISTS (SELECT 1 FROM {{work}} w WITH (READPAST, READCOMMITTEDLOCK, INDEX({{prefix}}_work_next))
                         WHERE w.consumer = @p1 AND w.stage IN (3, 4) AND w.next <= DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())) THEN 1 ELSE 0 END,
       @parked,
       CASE WHEN EXISTS (SELECT 1 FROM {{work}} w WITH (READPAST, READCOMMITTEDLOCK, INDEX({{prefix}}_work_arrived))
                         WHERE w.consumer = @p1 AND w.stage = 5) THEN 1 ELSE 0 END,
       CASE WHEN EXISTS (SELECT 1 FROM {{lane}} l WITH (READPAST, READCOMMITTEDLOCK, INDEX({{prefix}}_lane_vacant))
                         WHERE l.consumer = @p1 AND l.head IS NULL) THEN 1 ELSE 0 END;

-- name: fallen
SELECT TOP (@p2) w.seq, w.stage FROM {{work}} w WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, INDEX({{prefix}}_work_next))
WHERE w.consumer = @p1 AND w.stage IN (3, 4) AND w.next <= DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) AND w.fence >= 0
ORDER BY w.next, w.seq;

-- name: parked
SET NOCOUNT ON; DECLARE @topics TABLE (topic VARBINARY(1020)); DECLARE @topic VARBINARY(1020) = 0x, @next VARBINARY(1020);
WHILE @topic IS NOT NULL
BEGIN
    SET @next = NULL;
    SELECT TOP (1) @next = w.topic FROM {{work}} w WITH (READPAST, READCOMMITTEDLOCK, INDEX({{prefix}}_work_parked))
    WHERE w.consumer = @p1 AND w.stage = 11 AND w.topic > @topic ORDER BY w.topic;
    SET @topic = @next;
    IF @topic IS NOT NULL AND NOT EXISTS (SELECT 1 FROM {{pause}} p WITH (READUNCOMMITTED) WHERE p.consumer = @p1 AND p.topic = @topic)
        INSERT INTO @topics (topic) VALUES (@topic);
END;
SELECT TOP (@p2) w.seq, w.stage FROM @topics t
CROSS APPLY (
    SELECT TOP (@p2) w.seq, w.stage, w.ready_position FROM {{work}} w WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, INDEX({{prefix}}_work_parked))
    WHERE w.consumer = @p1 AND w.stage = 11 AND w.topic = t.topic AND w.fence >= 0
    ORDER BY w.ready_position
) w
ORDER BY w.ready_position;

-- name: arrive
SET LOCK_TIMEOUT {{wait}}; UPDATE w SET stage = 5, position = i.n
FROM {{work}} w WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]', n BIGINT '$[1]') AS i ON i.seq = w.seq;

-- name: ready
SET LOCK_TIMEOUT {{wait}}; UPDATE w SET stage = CASE WHEN w.lost >= 3 THEN 8 ELSE 7 END, ready_position = i.n
FROM {{work}} w WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]', n BIGINT '$[1]') AS i ON i.seq = w.seq;

-- name: arrived_groups
-- Group by group: one may have a great many messages.
SET NOCOUNT ON; DECLARE @groups TABLE (grp VARBINARY(1020)); DECLARE @left BIGINT = @p2, @grp VARBINARY(1020) = 0x, @next VARBINARY(1020);
WHILE @left > 0
BEGIN
    SET @next = NULL;
    SELECT TOP (1) @next = w.grp FROM {{work}} w WITH (READPAST, READCOMMITTEDLOCK, INDEX({{prefix}}_work_arrived))
    WHERE w.consumer = @p1 AND w.stage = 5 AND w.grp > @grp ORDER BY w.grp;
    IF @next IS NULL BREAK;
    INSERT INTO @groups (grp) VALUES (@next);
    SET @grp = @next;
    SET @left = @left - 1;
END;
SELECT grp FROM @groups ORDER BY grp;

-- name: insert_lanes
-- One that is there is left alone, also while somebody has it: it is then not
-- obtained by lock_lanes either.
SET LOCK_TIMEOUT 100; INSERT INTO {{lane}} (consumer, grp, head, position)
SELECT SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000), SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000), NULL, 0
FROM OPENJSON(@p1) WITH (consumer BIGINT '$[0]', grp BIGINT '$[1]') AS i
WHERE NOT EXISTS (SELECT 1 FROM {{lane}} l WITH (READUNCOMMITTED, FORCESEEK)
                  WHERE l.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
                    AND l.grp = CAST(SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000) AS VARBINARY(1020)));

-- name: lock_lanes
SELECT l.grp FROM OPENJSON(@p1) WITH (consumer BIGINT '$[0]', grp BIGINT '$[1]') AS i
JOIN {{lane}} l WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
  ON l.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
  AND l.grp = CAST(SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000) AS VARBINARY(1020))
WHERE l.position >= 0
ORDER BY l.consumer, l.grp;

-- name: arrivals
-- One group at a time, up to the first arrival that somebody has locked: there
-- sorting must stop. With row versions nothing stops it here.
SET NOCOUNT ON; SET XACT_ABORT OFF; SET LOCK_TIMEOUT 0;
DECLARE @arrived TABLE (seq BIGINT, position BIGINT); DECLARE @left BIGINT = @p3, @seq BIGINT, @position BIGINT = -1;
BEGIN TRY
    WHILE @left > 0
    BEGIN
        SET @seq = NULL;
        SELECT TOP (1) @seq = w.seq, @position = w.position FROM {{work}} w WITH (INDEX({{prefix}}_work_arrived))
        WHERE w.consumer = @p1 AND w.stage = 5 AND w.grp = @p2 AND w.position > @position
        ORDER BY w.position;
        IF @seq IS NULL BREAK;
        INSERT INTO @arrived (seq, position) VALUES (@seq, @position);
        SET @left = @left - 1;
    END;
END TRY
BEGIN CATCH IF ERROR_NUMBER() <> 1222 BEGIN THROW; END; END CATCH;
SELECT @p2, seq, position FROM @arrived ORDER BY position;

-- name: enqueue
SET LOCK_TIMEOUT {{wait}}; UPDATE w SET stage = 6
FROM {{work}} w WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i ON i.seq = w.seq;

-- name: lower_hint
SET LOCK_TIMEOUT {{wait}}; UPDATE l SET position = i.position
FROM {{lane}} l WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (consumer BIGINT '$[0]', grp BIGINT '$[1]', position BIGINT '$[2]') AS i
  ON l.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
    AND l.grp = CAST(SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000) AS VARBINARY(1020))
WHERE l.position > i.position;

-- name: vacant_lanes
SELECT TOP (@p2) l.grp, l.position FROM {{lane}} l WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, INDEX({{prefix}}_lane_vacant))
WHERE l.consumer = @p1 AND l.head IS NULL
ORDER BY l.grp;

-- name: lowest_queued
-- One lane at a time. Where somebody has the lowest, it gives a number that no
-- message has: such a lane stays vacant.
SET NOCOUNT ON; SET XACT_ABORT OFF; SET LOCK_TIMEOUT 0;
DECLARE @seq BIGINT, @position BIGINT;
BEGIN TRY
    SELECT TOP (1) @seq = w.seq, @position = w.position FROM {{work}} w WITH (INDEX({{prefix}}_work_queued))
    WHERE w.consumer = @p1 AND w.stage = 6 AND w.grp = @p2 AND w.position >= @p3
    ORDER BY w.position;
END TRY
BEGIN CATCH
    IF ERROR_NUMBER() <> 1222 BEGIN THROW; END;
    SELECT @seq = 0, @position = @p3;
END CATCH;
SELECT @p2, @seq, @position WHERE @seq IS NOT NULL;

-- name: set_heads
SET LOCK_TIMEOUT {{wait}}; UPDATE l SET head = i.seq, position = i.position
FROM {{lane}} l WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (consumer BIGINT '$[0]', grp BIGINT '$[1]', seq BIGINT '$[2]', position BIGINT '$[3]') AS i
  ON l.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
    AND l.grp = CAST(SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000) AS VARBINARY(1020));

-- name: delete_lanes
SET LOCK_TIMEOUT {{wait}}; DELETE l FROM {{lane}} l WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (consumer BIGINT '$[0]', grp BIGINT '$[1]') AS i
  ON l.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
  AND l.grp = CAST(SUBSTRING(@p2, i.grp / 100000000, i.grp % 100000000) AS VARBINARY(1020))
WHERE l.head IS NULL;

-- name: claim
-- The fence is in no index: to read it locks the row itself, beside its place in the
-- index.
SET LOCK_TIMEOUT {{wait}}; UPDATE w
SET stage = 9, owner = @p3, fence = w.fence + 1, guard = 0, lease_until = DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) + @p4
OUTPUT inserted.seq
FROM {{work}} w WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
JOIN (
    SELECT TOP (@p2) c.seq FROM {{work}} c WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, INDEX({{prefix}}_work_ready))
    WHERE c.consumer = @p1 AND c.ready_position >= @p5 AND c.stage = 7 AND c.fence >= 0
    ORDER BY c.ready_position
) c ON c.seq = w.seq;

-- name: claim_suspect
SET LOCK_TIMEOUT {{wait}}; UPDATE w
SET stage = 9, owner = @p3, fence = w.fence + 1, guard = 0, lease_until = DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) + @p4
OUTPUT inserted.seq
FROM {{work}} w WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, FORCESEEK)
JOIN (
    SELECT TOP (@p2) c.seq FROM {{work}} c WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, INDEX({{prefix}}_work_suspect))
    WHERE c.consumer = @p1 AND c.ready_position >= @p5 AND c.stage = 8 AND c.fence >= 0
    ORDER BY c.ready_position
) c ON c.seq = w.seq;

-- name: claimed
-- In the same transaction. The message needs no lock: whoever changes it has the
-- work row.
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision,
       w.seq, w.ready_position, w.attempt, w.expires, w.fence, w.lease_until, w.revision, w.last_error, w.last_seen,
       DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())
FROM OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i
JOIN {{work}} w WITH (FORCESEEK) ON w.seq = i.seq
JOIN {{message}} m WITH (READUNCOMMITTED, FORCESEEK) ON m.seq = w.seq;

-- name: messages
SET LOCK_TIMEOUT {{wait}}; SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq
FROM OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i
JOIN {{message}} m WITH (FORCESEEK) ON m.seq = i.seq;

-- name: expired_leases
-- A key never changes, so that it needs no lock to be read.
SELECT TOP (@p2) w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()), m.source, m.id
FROM {{work}} w WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, INDEX({{prefix}}_work_lease))
JOIN {{message}} m WITH (READUNCOMMITTED, FORCESEEK) ON m.seq = w.seq
WHERE w.consumer = @p1 AND w.stage = 9 AND w.lease_until <= DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME())
ORDER BY w.lease_until, w.seq;

-- name: extend
SET LOCK_TIMEOUT {{wait}}; UPDATE w SET lease_until = i.lease_until
FROM {{work}} w WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]', lease_until BIGINT '$[1]') AS i ON i.seq = w.seq;

-- name: old_done
-- The done row is the token: whoever holds it may remove the message.
SELECT TOP (@p3) d.seq FROM {{done}} d WITH (READPAST, UPDLOCK, ROWLOCK, READCOMMITTEDLOCK, INDEX({{prefix}}_done_at))
WHERE d.consumer = @p1 AND d.purged = CAST(@p4 AS BIT) AND d.done_at <= DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) - @p2 AND d.runs >= 0
ORDER BY d.done_at, d.seq;

-- name: purge_payloads
SET LOCK_TIMEOUT {{wait}}; UPDATE m SET payload = NULL, headers = NULL
FROM {{message}} m WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i ON i.seq = m.seq;

-- name: mark_purged
SET LOCK_TIMEOUT {{wait}}; UPDATE d SET purged = 1
FROM {{done}} d WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (seq BIGINT '$[0]') AS i ON i.seq = d.seq;

-- name: get
SET LOCK_TIMEOUT {{wait}}; SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE m.consumer = @p1 AND m.source = @p2 AND m.id = @p3;

-- name: list_live
SET LOCK_TIMEOUT {{wait}};
SELECT TOP (@p8) m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN @p7 = 1 THEN m.payload END, CASE WHEN @p7 = 1 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE (@p1 = 0x OR w.consumer = @p1) AND w.seq > @p2
  AND (@p3 = 0x OR m.topic = @p3) AND (@p4 = 0x OR m.source = @p4) AND (@p5 = 0x OR m.grp = @p5)
  AND (@p9 = 0 OR (m.first_seen < DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) - @p9 AND COALESCE(m.due_at, 0) < DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()) - @p9))
  AND ((@p6 = 1 AND w.stage = 1) OR (@p6 = 2 AND w.stage NOT IN (1, 10)) OR (@p6 NOT IN (1, 2) AND w.stage = 10))
ORDER BY w.seq;

-- name: list_done
SET LOCK_TIMEOUT {{wait}};
SELECT TOP (@p8) m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN @p7 = 1 THEN m.payload END, CASE WHEN @p7 = 1 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{done}} d JOIN {{message}} m ON m.seq = d.seq
WHERE (@p1 = 0x OR d.consumer = @p1) AND d.seq > @p2
  AND (@p3 = 0x OR m.topic = @p3) AND (@p4 = 0x OR m.source = @p4) AND (@p5 = 0x OR m.grp = @p5)
  AND (@p9 IS NULL OR d.done_at >= @p9) AND (@p10 IS NULL OR d.done_at < @p10)
  AND @p6 = 3
ORDER BY d.seq;

-- name: list_all
SET LOCK_TIMEOUT {{wait}};
SELECT TOP (@p8) m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN @p7 = 1 THEN m.payload END, CASE WHEN @p7 = 1 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE (@p1 = 0x OR m.consumer = @p1) AND m.seq > @p2
  AND (@p3 = 0x OR m.topic = @p3) AND (@p4 = 0x OR m.source = @p4) AND (@p5 = 0x OR m.grp = @p5)
  AND @p6 = 0
ORDER BY m.seq;

-- name: insert_audit
SET LOCK_TIMEOUT {{wait}}; INSERT INTO {{audit}} (at, actor, action, reason, consumer, source, id, detail)
SELECT DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()), SUBSTRING(@p2, i.actor / 100000000, i.actor % 100000000),
       SUBSTRING(@p2, i.action / 100000000, i.action % 100000000),
       SUBSTRING(@p2, i.reason / 100000000, i.reason % 100000000), SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000),
       SUBSTRING(@p2, i.source / 100000000, i.source % 100000000),
       SUBSTRING(@p2, i.id / 100000000, i.id % 100000000), SUBSTRING(@p2, i.detail / 100000000, i.detail % 100000000)
FROM OPENJSON(@p1) WITH (actor BIGINT '$[0]', action BIGINT '$[1]', reason BIGINT '$[2]', consumer BIGINT '$[3]',
    source BIGINT '$[4]', id BIGINT '$[5]', detail BIGINT '$[6]') AS i;

-- name: audit
SET LOCK_TIMEOUT {{wait}}; SELECT TOP (@p3) entry, at, actor, action, reason, consumer, source, id, detail FROM {{audit}}
WHERE (@p1 = 0x OR consumer = @p1) AND (@p2 = 0 OR entry < @p2) ORDER BY entry DESC;

-- name: count
-- What somebody adds between the two fails the second as a duplicate, and the
-- transaction is repeated.
SET LOCK_TIMEOUT {{wait}}; UPDATE t SET n = t.n + i.n
FROM {{total}} t WITH (ROWLOCK, FORCESEEK)
JOIN OPENJSON(@p1) WITH (consumer BIGINT '$[0]', topic BIGINT '$[1]', name BIGINT '$[2]', n BIGINT '$[3]') AS i
  ON t.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
    AND t.topic = CAST(SUBSTRING(@p2, i.topic / 100000000, i.topic % 100000000) AS VARBINARY(1020))
    AND t.name = CAST(SUBSTRING(@p2, i.name / 100000000, i.name % 100000000) AS VARBINARY(64));
INSERT INTO {{total}} (consumer, topic, name, n)
SELECT SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000), SUBSTRING(@p2, i.topic / 100000000, i.topic % 100000000),
       SUBSTRING(@p2, i.name / 100000000, i.name % 100000000), i.n
FROM OPENJSON(@p1) WITH (consumer BIGINT '$[0]', topic BIGINT '$[1]', name BIGINT '$[2]', n BIGINT '$[3]') AS i
WHERE NOT EXISTS (SELECT 1 FROM {{total}} t WITH (READCOMMITTEDLOCK, FORCESEEK)
    WHERE t.consumer = CAST(SUBSTRING(@p2, i.consumer / 100000000, i.consumer % 100000000) AS VARBINARY(64))
      AND t.topic = CAST(SUBSTRING(@p2, i.topic / 100000000, i.topic % 100000000) AS VARBINARY(1020))
      AND t.name = CAST(SUBSTRING(@p2, i.name / 100000000, i.name % 100000000) AS VARBINARY(64))
);

-- name: totals
SET LOCK_TIMEOUT {{wait}}; SELECT consumer, topic, name, n FROM {{total}} WHERE @p1 = 0x OR consumer = @p1 ORDER BY consumer, topic, name;

-- name: live_counts
-- An overview waits for nobody.
SELECT consumer, topic, stage, COUNT_BIG(*) FROM {{work}} WITH (READUNCOMMITTED) WHERE @p1 = 0x OR consumer = @p1
GROUP BY consumer, topic, stage ORDER BY consumer, topic, stage;

-- name: oldest_waiting
SELECT TOP (1) m.first_seen FROM {{work}} w WITH (READUNCOMMITTED) JOIN {{message}} m WITH (READUNCOMMITTED) ON m.seq = w.seq
WHERE w.stage = 7 AND (@p1 = 0x OR w.consumer = @p1) ORDER BY w.ready_position;

-- name: table_sizes
SELECT t.name, SUM(CASE WHEN p.index_id IN (0, 1) AND a.type = 1 THEN p.rows ELSE 0 END), SUM(a.total_pages) * 8192, 1
FROM sys.tables t
JOIN sys.partitions p ON p.object_id = t.object_id
JOIN sys.allocation_units a ON a.container_id = p.partition_id
WHERE t.object_id IN (OBJECT_ID(N'{{message}}'), OBJECT_ID(N'{{work}}'), OBJECT_ID(N'{{done}}'), OBJECT_ID(N'{{lane}}'), OBJECT_ID(N'{{audit}}'))
GROUP BY t.name ORDER BY t.name;

-- name: pause
SET LOCK_TIMEOUT {{wait}}; INSERT INTO {{pause}} (consumer, topic, at, actor, reason)
OUTPUT inserted.topic
SELECT @p1, @p2, DATEDIFF_BIG(MICROSECOND, '1970-01-01', SYSUTCDATETIME()), @p3, @p4
WHERE NOT EXISTS (SELECT 1 FROM {{pause}} p WITH (READCOMMITTEDLOCK) WHERE p.consumer = @p1 AND p.topic = @p2);

-- name: resume
SET LOCK_TIMEOUT {{wait}}; DELETE FROM {{pause}} OUTPUT deleted.topic WHERE consumer = @p1 AND topic = @p2;

-- name: paused
SET LOCK_TIMEOUT {{wait}}; SELECT topic FROM {{pause}} WHERE consumer = @p1 ORDER BY topic;

-- name: version
SET LOCK_TIMEOUT {{wait}}; SELECT COALESCE(MAX(version), 0) FROM {{version}};

-- name: lock_migrations
-- It goes with the transaction, as the tables do if that fails.
DECLARE @got INT;
EXEC @got = sp_getapplock @Resource = N'postroom migrate {{schema}} {{prefix}}', @LockMode = 'Exclusive', @LockOwner = 'Transaction', @LockTimeout = 60000;
IF @got < 0 BEGIN THROW 51222, N'another program migrates', 1; END;

-- name: has_schema
SELECT name FROM sys.schemas WHERE name = CONVERT(VARCHAR(128), @p1);

-- name: create_schema
IF SCHEMA_ID(PARSENAME(N'{{schema}}', 1)) IS NULL EXEC(N'CREATE SCHEMA {{schema}}');

-- name: create_version
IF OBJECT_ID(N'{{version}}') IS NULL
CREATE TABLE {{version}} (version INT NOT NULL PRIMARY KEY, applied_at DATETIME2(6) NOT NULL DEFAULT SYSUTCDATETIME());

-- name: insert_version
INSERT INTO {{version}} (version) SELECT @p1 WHERE NOT EXISTS (SELECT 1 FROM {{version}} WHERE version = @p1);

-- name: grants
-- On the schema itself nothing is needed.

GRANT SELECT, INSERT, UPDATE, DELETE ON {{message}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{work}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{done}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{lane}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{audit}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{total}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{pause}} TO {role};
GRANT UPDATE ON {{sequence}} TO {role};
GRANT SELECT ON {{version}} TO {role};
GRANT SELECT ON {{record}} TO {role};
