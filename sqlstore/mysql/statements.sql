-- The statements of MariaDB and MySQL. Rows come as one JSON array of arrays, in
-- which texts and bytes are base64: that is the same in every character set. New
-- rows come one by one in place of ($*).
-- Joins name their order and their index, because what is locked depends on them.

-- name: server
SELECT VERSION();

-- name: clock
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));

-- name: ticket
-- The counter goes on by itself, so that nobody waits for this row.
INSERT INTO {{sequence}} () VALUES ();

-- name: positions
SELECT CAST(LAST_INSERT_ID() AS SIGNED) * $1;

-- name: tear_ticket
DELETE FROM {{sequence}} WHERE n = LAST_INSERT_ID();

-- name: probe_keys
-- Fails when one of these keys, which nobody sees, sits in an open transaction.
-- At READ COMMITTED a key that is not there is not locked by this.
SELECT m.seq FROM JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', source LONGTEXT PATH '$[1]', id LONGTEXT PATH '$[2]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (PRIMARY) ON m.consumer = FROM_BASE64(i.consumer) AND m.source = FROM_BASE64(i.source) AND m.id = FROM_BASE64(i.id)
FOR UPDATE NOWAIT;

-- name: receive
-- insert_message and insert_work with one round trip and one commit, for messages
-- without groups that are to be queued. Only MariaDB has such a statement. Gives
-- the first of the numbers, which follow the batch, and which were used if not all
-- were. A key that sits in somebody's transaction is not waited for.
BEGIN NOT ATOMIC
    DECLARE first, fresh BIGINT;
    DECLARE at BIGINT DEFAULT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));
    DECLARE used LONGTEXT;
    DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
    SET TRANSACTION ISOLATION LEVEL READ COMMITTED;
    START TRANSACTION;
    INSERT INTO {{sequence}} () VALUES ();
    SET first = LAST_INSERT_ID() * 100000;
    DELETE FROM {{sequence}} WHERE n = LAST_INSERT_ID();
    SET STATEMENT innodb_lock_wait_timeout = 0 FOR
    INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, headers, hash, hash_alg, digest, due_at, expires_at, occurred_at,
        correlation_id, causation_id, first_seen, revision)
    VALUES (first - 1 + $*, at, 1)
    ON DUPLICATE KEY UPDATE revision = {{message}}.revision;
    INSERT INTO {{work}} (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, retry, next, expires, owner, fence,
        lease_until, guard, revision, last_error, last_seen)
    SELECT m.seq, m.consumer, m.topic, m.grp, CASE WHEN m.due_at > at THEN 3 ELSE 7 END, m.seq, m.seq, 0, 0, m.due_at, NULL, m.due_at,
        m.expires_at, '', 0, NULL, 0, 1, '', at
    FROM {{message}} m FORCE INDEX (seq) WHERE m.seq BETWEEN first AND first + 99999 ORDER BY m.seq;
    SET fresh = ROW_COUNT();
    IF fresh < $# THEN
        SET STATEMENT group_concat_max_len = 4000000 FOR
        SELECT GROUP_CONCAT(m.seq) INTO used FROM {{message}} m FORCE INDEX (seq) WHERE m.seq BETWEEN first AND first + 99999;
    END IF;
    COMMIT;
    SELECT CAST(first AS CHAR), used, fresh < $#, at;
END;

-- name: insert_message
-- Rows come in the order of their keys, so that crossed batches wait instead of
-- deadlocking. MariaDB does not even wait; for MySQL the first line is a comment.
/*M! SET STATEMENT innodb_lock_wait_timeout = 0 FOR */
INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, headers, hash, hash_alg, digest, due_at, expires_at, occurred_at,
    correlation_id, causation_id, first_seen, revision)
VALUES ($*, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
ON DUPLICATE KEY UPDATE revision = {{message}}.revision;

-- name: insert_message_waiting
-- In a caller's transaction.
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
INSERT INTO {{message}} (seq, consumer, source, id, grp, topic, payload, headers, hash, hash_alg, digest, due_at, expires_at, occurred_at,
    correlation_id, causation_id, first_seen, revision)
VALUES ($*, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), 1)
ON DUPLICATE KEY UPDATE revision = {{message}}.revision;

-- name: inserted
SELECT m.seq, m.consumer, m.source, m.id, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = i.seq;

-- name: lookup
SELECT m.consumer, m.source, m.id, m.seq, m.topic, m.grp, m.revision, m.hash, m.hash_alg, m.digest,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', source LONGTEXT PATH '$[1]', id LONGTEXT PATH '$[2]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (PRIMARY) ON m.consumer = FROM_BASE64(i.consumer) AND m.source = FROM_BASE64(i.source) AND m.id = FROM_BASE64(i.id)
LEFT JOIN {{work}} w ON w.seq = m.seq
LEFT JOIN {{done}} d ON d.seq = m.seq;

-- name: lock_work
-- Locks in the order in which the numbers come.
SELECT w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
FOR UPDATE SKIP LOCKED;

-- name: lock_work_waiting
-- In a caller's transaction at REPEATABLE READ, where to skip a row locks the gap
-- behind it.
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
SELECT w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
FOR UPDATE;

-- name: lock_messages
SELECT m.consumer, m.source, m.id, m.seq, m.topic, m.grp, m.revision, m.hash, m.hash_alg, m.digest
FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = i.seq
FOR UPDATE SKIP LOCKED;

-- name: lock_messages_waiting
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
SELECT m.consumer, m.source, m.id, m.seq, m.topic, m.grp, m.revision, m.hash, m.hash_alg, m.digest
FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = i.seq
FOR UPDATE;

-- name: exists_work
SELECT w.seq FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq;

-- name: lock_done
SELECT d.seq FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{done}} d FORCE INDEX (PRIMARY) ON d.seq = i.seq
FOR UPDATE SKIP LOCKED;

-- name: insert_work
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
INSERT INTO {{work}} (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, retry, next, expires, owner, fence,
    lease_until, guard, revision, last_error, last_seen)
VALUES ($*);

-- name: update_work
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (
    seq BIGINT PATH '$[0]', consumer LONGTEXT PATH '$[1]', topic LONGTEXT PATH '$[2]', grp LONGTEXT PATH '$[3]',
    stage BIGINT PATH '$[4]', position BIGINT PATH '$[5]', ready_position BIGINT PATH '$[6]',
    attempt BIGINT PATH '$[7]', lost BIGINT PATH '$[8]', due BIGINT PATH '$[9]', retry BIGINT PATH '$[10]',
    next BIGINT PATH '$[11]', expires BIGINT PATH '$[12]', owner LONGTEXT PATH '$[13]', fence BIGINT PATH '$[14]',
    lease_until BIGINT PATH '$[15]', guard BIGINT PATH '$[16]', revision BIGINT PATH '$[17]',
    last_error LONGTEXT PATH '$[18]', last_seen BIGINT PATH '$[19]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
SET w.grp = FROM_BASE64(i.grp), w.topic = FROM_BASE64(i.topic), w.stage = i.stage, w.position = i.position, w.ready_position = i.ready_position,
    w.attempt = i.attempt, w.lost = i.lost, w.due = i.due, w.retry = i.retry, w.next = i.next, w.expires = i.expires,
    w.owner = FROM_BASE64(i.owner), w.fence = i.fence, w.lease_until = i.lease_until, w.guard = i.guard,
    w.revision = i.revision, w.last_error = FROM_BASE64(i.last_error), w.last_seen = i.last_seen;

-- name: delete_work
DELETE w FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq;

-- name: insert_done
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
VALUES ($*);

-- name: ack_alike
-- Locks plain leases that are current and end alike, makes outcomes of them, and
-- tells which: delete_work follows. What somebody else has locked is passed by.
-- Only MariaDB can tell.
INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT w.seq, w.consumer, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), w.attempt + 1, $4, $3, $3 < w.revision, $5, $6,
       w.fence, w.last_seen, 0
FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', fence BIGINT PATH '$[1]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
WHERE w.stage = 9 AND w.guard = 0 AND w.grp = '' AND w.owner = $2 AND w.fence = i.fence
FOR UPDATE SKIP LOCKED
RETURNING seq, superseded;

-- name: delete_done
DELETE d FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{done}} d FORCE INDEX (PRIMARY) ON d.seq = i.seq;

-- name: delete_message
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
DELETE m FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = i.seq;

-- name: update_content
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (
    seq BIGINT PATH '$[0]', revision BIGINT PATH '$[1]', regroup BIGINT PATH '$[2]', grp LONGTEXT PATH '$[3]',
    topic LONGTEXT PATH '$[4]', payload LONGTEXT PATH '$[5]', headers LONGTEXT PATH '$[6]',
    hash LONGTEXT PATH '$[7]', hash_alg LONGTEXT PATH '$[8]', digest LONGTEXT PATH '$[9]',
    due_at BIGINT PATH '$[10]', expires_at BIGINT PATH '$[11]', occurred_at BIGINT PATH '$[12]',
    correlation_id LONGTEXT PATH '$[13]', causation_id LONGTEXT PATH '$[14]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = i.seq
SET m.grp = CASE WHEN i.regroup THEN FROM_BASE64(i.grp) ELSE m.grp END,
    m.revision = i.revision, m.topic = FROM_BASE64(i.topic), m.payload = FROM_BASE64(i.payload),
    m.headers = FROM_BASE64(i.headers), m.hash = FROM_BASE64(i.hash), m.hash_alg = FROM_BASE64(i.hash_alg),
    m.digest = FROM_BASE64(i.digest), m.due_at = i.due_at, m.expires_at = i.expires_at, m.occurred_at = i.occurred_at,
    m.correlation_id = FROM_BASE64(i.correlation_id), m.causation_id = FROM_BASE64(i.causation_id);

-- name: adopt_hash
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', hash LONGTEXT PATH '$[1]', hash_alg LONGTEXT PATH '$[2]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = i.seq
SET m.hash = FROM_BASE64(i.hash), m.hash_alg = FROM_BASE64(i.hash_alg)
WHERE m.hash IS NULL;

-- name: stale_work
SELECT w.seq FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
WHERE w.last_seen <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 1000000
FOR UPDATE SKIP LOCKED;

-- name: touch_work
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
SET w.last_seen = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));

-- name: stale_done
SELECT d.seq FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{done}} d FORCE INDEX (PRIMARY) ON d.seq = i.seq
WHERE d.last_seen <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - 1000000
FOR UPDATE SKIP LOCKED;

-- name: touch_done
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{done}} d FORCE INDEX (PRIMARY) ON d.seq = i.seq
SET d.last_seen = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6));

-- name: vacate_lanes
-- Locks in the order in which the lanes come.
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', grp LONGTEXT PATH '$[1]', seq BIGINT PATH '$[2]')) AS i
STRAIGHT_JOIN {{lane}} l FORCE INDEX (PRIMARY) ON l.consumer = FROM_BASE64(i.consumer) AND l.grp = FROM_BASE64(i.grp)
SET l.head = NULL
WHERE l.head = i.seq;

-- name: lane_heads
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
SELECT l.head FROM JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', grp LONGTEXT PATH '$[1]', seq BIGINT PATH '$[2]')) AS i
STRAIGHT_JOIN {{lane}} l FORCE INDEX (PRIMARY) ON l.consumer = FROM_BASE64(i.consumer) AND l.grp = FROM_BASE64(i.grp)
WHERE l.head = i.seq
FOR UPDATE;

-- name: peek
SELECT EXISTS (SELECT 1 FROM {{work}} WHERE consumer = $1 AND shelf = 3 AND line = '' AND turn <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))),
       EXISTS (
           -- Topic by topic: a paused one may have a great many messages.
           WITH RECURSIVE t (topic) AS (
               SELECT (SELECT MIN(w.line) FROM {{work}} w WHERE w.consumer = $1 AND w.shelf = 11)
               UNION ALL
               SELECT (SELECT MIN(w.line) FROM {{work}} w WHERE w.consumer = $1 AND w.shelf = 11 AND w.line > t.topic)
               FROM t WHERE t.topic IS NOT NULL
           )
           SELECT 1 FROM t WHERE t.topic IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM {{pause}} p WHERE p.consumer = $1 AND p.topic = t.topic)
       ),
       EXISTS (SELECT 1 FROM {{work}} WHERE consumer = $1 AND shelf = 5),
       EXISTS (SELECT 1 FROM {{lane}} WHERE consumer = $1 AND head IS NULL);

-- name: fallen
SELECT seq, stage FROM {{work}} FORCE INDEX (shelf)
WHERE consumer = $1 AND shelf = 3 AND line = '' AND turn <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
ORDER BY turn, seq LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: parked
SELECT w.seq, w.stage FROM {{work}} w FORCE INDEX (shelf)
WHERE w.consumer = $1 AND w.shelf = 11
  AND NOT EXISTS (SELECT 1 FROM {{pause}} p WHERE p.consumer = w.consumer AND p.topic = w.topic)
ORDER BY w.turn LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: arrive
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', n BIGINT PATH '$[1]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
SET w.stage = 5, w.position = i.n;

-- name: ready
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', n BIGINT PATH '$[1]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
SET w.stage = CASE WHEN w.lost >= 3 THEN 8 ELSE 7 END, w.ready_position = i.n;

-- name: arrived_groups
SELECT DISTINCT line FROM {{work}} FORCE INDEX (shelf) WHERE consumer = $1 AND shelf = 5 ORDER BY line LIMIT $2;

-- name: insert_lanes
-- What is there is left alone: to meet it would lock it.
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
INSERT INTO {{lane}} (consumer, grp, head, position)
SELECT FROM_BASE64(i.consumer), FROM_BASE64(i.grp), NULL, 0
FROM JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', grp LONGTEXT PATH '$[1]')) AS i
LEFT JOIN {{lane}} l ON l.consumer = FROM_BASE64(i.consumer) AND l.grp = FROM_BASE64(i.grp)
WHERE l.grp IS NULL
ON DUPLICATE KEY UPDATE position = {{lane}}.position;

-- name: lock_lanes
SELECT l.grp FROM JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', grp LONGTEXT PATH '$[1]')) AS i
STRAIGHT_JOIN {{lane}} l FORCE INDEX (PRIMARY) ON l.consumer = FROM_BASE64(i.consumer) AND l.grp = FROM_BASE64(i.grp)
FOR UPDATE SKIP LOCKED;

-- name: arrivals
-- One group at a time.
SELECT grp, seq, position FROM {{work}} FORCE INDEX (shelf)
WHERE consumer = $1 AND shelf = 5 AND line = $2 ORDER BY turn LIMIT $3;

-- name: enqueue
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
SET w.stage = 6;

-- name: lower_hint
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', grp LONGTEXT PATH '$[1]', position BIGINT PATH '$[2]')) AS i
STRAIGHT_JOIN {{lane}} l FORCE INDEX (PRIMARY) ON l.consumer = FROM_BASE64(i.consumer) AND l.grp = FROM_BASE64(i.grp)
SET l.position = i.position
WHERE l.position > i.position;

-- name: vacant_lanes
SELECT grp, position FROM {{lane}} FORCE INDEX (vacant)
WHERE consumer = $1 AND head IS NULL
ORDER BY grp LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: lowest_queued
-- One lane at a time.
SELECT grp, seq, position FROM {{work}} FORCE INDEX (shelf)
WHERE consumer = $1 AND shelf = 6 AND line = $2 AND turn >= $3 ORDER BY turn LIMIT 1;

-- name: set_heads
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', grp LONGTEXT PATH '$[1]', seq BIGINT PATH '$[2]', position BIGINT PATH '$[3]')) AS i
STRAIGHT_JOIN {{lane}} l FORCE INDEX (PRIMARY) ON l.consumer = FROM_BASE64(i.consumer) AND l.grp = FROM_BASE64(i.grp)
SET l.head = i.seq, l.position = i.position;

-- name: delete_lanes
DELETE l FROM JSON_TABLE($1, '$[*]' COLUMNS (consumer LONGTEXT PATH '$[0]', grp LONGTEXT PATH '$[1]')) AS i
STRAIGHT_JOIN {{lane}} l FORCE INDEX (PRIMARY) ON l.consumer = FROM_BASE64(i.consumer) AND l.grp = FROM_BASE64(i.grp)
WHERE l.head IS NULL;

-- name: claim
-- A statement of its own: inside an update, SKIP LOCKED waits all the same. The
-- index gives the order, so that no row beyond the limit is locked.
SELECT seq FROM {{work}} FORCE INDEX (shelf)
WHERE consumer = $1 AND shelf = 7 AND line = '' AND turn >= $5
ORDER BY turn LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: claim_suspect
SELECT seq FROM {{work}} FORCE INDEX (shelf)
WHERE consumer = $1 AND shelf = 8 AND line = '' AND turn >= $5
ORDER BY turn LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: lease
-- By a list: an update of a join keeps what it will write in a table on disk, for
-- the sake of owner. After some ten thousand numbers the server would read all rows.
UPDATE {{work}} w FORCE INDEX (PRIMARY)
SET w.stage = 9, w.owner = $2, w.fence = w.fence + 1, w.guard = 0, w.lease_until = TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) + $3
WHERE w.seq IN ($@);

-- name: claimed
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision,
       w.seq, w.ready_position, w.attempt, w.expires, w.fence, w.lease_until, w.revision, w.last_error, w.last_seen,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = w.seq;

-- name: messages
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq
FROM JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = i.seq;

-- name: expired_leases
-- By subqueries: a join would lock the messages too.
SELECT w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)),
       (SELECT m.source FROM {{message}} m WHERE m.seq = w.seq), (SELECT m.id FROM {{message}} m WHERE m.seq = w.seq)
FROM {{work}} w FORCE INDEX (shelf)
WHERE w.consumer = $1 AND w.shelf = 9 AND w.line = '' AND w.turn <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
ORDER BY w.turn, w.seq LIMIT $2
FOR UPDATE SKIP LOCKED;

-- name: extend
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]', lease_until BIGINT PATH '$[1]')) AS i
STRAIGHT_JOIN {{work}} w FORCE INDEX (PRIMARY) ON w.seq = i.seq
SET w.lease_until = i.lease_until;

-- name: old_done
-- The done row is the token: whoever holds it may remove the message.
SELECT seq FROM {{done}} FORCE INDEX (done_at)
WHERE consumer = $1 AND purged = $4 AND done_at <= TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - $2
ORDER BY done_at, seq LIMIT $3
FOR UPDATE SKIP LOCKED;

-- name: purge_payloads
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{message}} m FORCE INDEX (seq) ON m.seq = i.seq
SET m.payload = NULL, m.headers = NULL;

-- name: mark_purged
UPDATE JSON_TABLE($1, '$[*]' COLUMNS (seq BIGINT PATH '$[0]')) AS i
STRAIGHT_JOIN {{done}} d FORCE INDEX (PRIMARY) ON d.seq = i.seq
SET d.purged = 1;

-- name: get
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE m.consumer = $1 AND m.source = $2 AND m.id = $3;

-- name: list_live
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN $7 THEN m.payload END, CASE WHEN $7 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE ($1 = '' OR w.consumer = $1) AND w.seq > $2
  AND ($3 = '' OR m.topic = $3) AND ($4 = '' OR m.source = $4) AND ($5 = '' OR m.grp = $5)
  AND ($9 = 0 OR GREATEST(m.first_seen, COALESCE(m.due_at, 0)) < TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) - $9)
  AND CASE $6 WHEN 1 THEN w.stage = 1 WHEN 2 THEN w.stage NOT IN (1, 10) ELSE w.stage = 10 END
ORDER BY w.seq LIMIT $8;

-- name: list_done
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN $7 THEN m.payload END, CASE WHEN $7 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{done}} d JOIN {{message}} m ON m.seq = d.seq
WHERE ($1 = '' OR d.consumer = $1) AND d.seq > $2
  AND ($3 = '' OR m.topic = $3) AND ($4 = '' OR m.source = $4) AND ($5 = '' OR m.grp = $5)
  AND ($9 IS NULL OR d.done_at >= $9) AND ($10 IS NULL OR d.done_at < $10)
  AND $6 = 3
ORDER BY d.seq LIMIT $8;

-- name: list_all
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN $7 THEN m.payload END, CASE WHEN $7 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE ($1 = '' OR m.consumer = $1) AND m.seq > $2
  AND ($3 = '' OR m.topic = $3) AND ($4 = '' OR m.source = $4) AND ($5 = '' OR m.grp = $5)
  AND $6 = 0
ORDER BY m.seq LIMIT $8;

-- name: insert_audit
INSERT INTO {{audit}} (at, actor, action, reason, consumer, source, id, detail)
SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), FROM_BASE64(i.actor), FROM_BASE64(i.action),
       FROM_BASE64(i.reason), FROM_BASE64(i.consumer), FROM_BASE64(i.source), FROM_BASE64(i.id), FROM_BASE64(i.detail)
FROM JSON_TABLE($1, '$[*]' COLUMNS (
    actor LONGTEXT PATH '$[0]', action LONGTEXT PATH '$[1]', reason LONGTEXT PATH '$[2]',
    consumer LONGTEXT PATH '$[3]', source LONGTEXT PATH '$[4]', id LONGTEXT PATH '$[5]',
    detail LONGTEXT PATH '$[6]')) AS i;

-- name: audit
SELECT entry, at, actor, action, reason, consumer, source, id, detail FROM {{audit}}
WHERE ($1 = '' OR consumer = $1) AND ($2 = 0 OR entry < $2) ORDER BY entry DESC LIMIT $3;

-- name: count
/*M! SET STATEMENT innodb_lock_wait_timeout = {{seconds}} FOR */
INSERT INTO {{total}} (consumer, topic, name, n)
SELECT FROM_BASE64(i.consumer), FROM_BASE64(i.topic), FROM_BASE64(i.name), i.n
FROM JSON_TABLE($1, '$[*]' COLUMNS (
    consumer LONGTEXT PATH '$[0]', topic LONGTEXT PATH '$[1]', name LONGTEXT PATH '$[2]', n BIGINT PATH '$[3]')) AS i
ON DUPLICATE KEY UPDATE n = {{total}}.n + VALUES(n);

-- name: totals
SELECT consumer, topic, name, n FROM {{total}} WHERE $1 = '' OR consumer = $1 ORDER BY consumer, topic, name;

-- name: live_counts
SELECT consumer, topic, stage, COUNT(*) FROM {{work}} WHERE $1 = '' OR consumer = $1
GROUP BY consumer, topic, stage ORDER BY consumer, topic, stage;

-- name: oldest_waiting
SELECT m.first_seen FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE w.stage = 7 AND ($1 = '' OR w.consumer = $1) ORDER BY w.ready_position LIMIT 1;

-- name: table_sizes
SELECT table_name, table_rows, data_length + index_length, 1
FROM information_schema.tables
WHERE table_schema = COALESCE(NULLIF(REPLACE('{{schema}}', '`', ''), ''), DATABASE())
  AND table_name IN ('{{prefix}}_message', '{{prefix}}_work', '{{prefix}}_done', '{{prefix}}_lane', '{{prefix}}_audit')
ORDER BY table_name;

-- name: find_pause
SELECT topic FROM {{pause}} WHERE consumer = $1 AND topic = $2 FOR UPDATE;

-- name: pause
INSERT INTO {{pause}} (consumer, topic, at, actor, reason) VALUES ($1, $2, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)), $3, $4)
ON DUPLICATE KEY UPDATE reason = {{pause}}.reason;

-- name: resume
DELETE FROM {{pause}} WHERE consumer = $1 AND topic = $2;

-- name: paused
SELECT topic FROM {{pause}} WHERE consumer = $1 ORDER BY topic;

-- name: version
SELECT COALESCE(MAX(version), 0) FROM {{version}};

-- name: lock_migrations
-- The server's, not the transaction's: every statement that makes a table commits.
SELECT COALESCE(GET_LOCK(CONCAT('postroom ', MD5(CONCAT(COALESCE(NULLIF(REPLACE('{{schema}}', '`', ''), ''), DATABASE()), '.{{prefix}}'))), 60), 0);

-- name: unlock_migrations
DO RELEASE_LOCK(CONCAT('postroom ', MD5(CONCAT(COALESCE(NULLIF(REPLACE('{{schema}}', '`', ''), ''), DATABASE()), '.{{prefix}}'))));

-- name: has_schema
SELECT schema_name FROM information_schema.schemata WHERE schema_name = $1;

-- name: create_schema
CREATE DATABASE IF NOT EXISTS {{schema}};

-- name: create_version
CREATE TABLE IF NOT EXISTS {{version}} (version INT NOT NULL PRIMARY KEY, applied_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) ENGINE = InnoDB;

-- name: insert_version
INSERT INTO {{version}} (version) VALUES ($1) ON DUPLICATE KEY UPDATE version = {{version}}.version;

-- name: grants
-- On the database itself nothing is needed.

GRANT SELECT, INSERT, UPDATE, DELETE ON {{message}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{work}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{done}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{lane}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{audit}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{total}} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON {{pause}} TO {role};
GRANT SELECT, INSERT, DELETE ON {{sequence}} TO {role};
GRANT SELECT ON {{version}} TO {role};
GRANT SELECT ON {{record}} TO {role};
