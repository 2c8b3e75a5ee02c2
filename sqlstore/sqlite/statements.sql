-- The statements of SQLite. Rows of several values come one at a time, numbers of
-- messages as a JSON array, or as a span without a gap. One transaction writes at a time, so that no row needs
-- a lock. Times are microseconds since 1970.

-- name: set_up
PRAGMA journal_mode = WAL;

-- name: begin
-- Takes the writer's lock first: a transaction that read before it wrote could
-- not go on after another one's commit.
UPDATE {{sequence}} SET n = n WHERE false;

-- name: clock
SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000;

-- name: stored
-- How many messages of a span there are.
SELECT count(*) FROM {{message}} WHERE seq BETWEEN ?1 AND ?2;

-- name: stored_numbers
SELECT seq FROM {{message}} WHERE seq BETWEEN ?1 AND ?2 ORDER BY seq;

-- name: insert_work_span
-- insert_work for messages that are to be queued, as they stand there.
INSERT INTO {{work}} (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, retry, next, expires,
                      owner, fence, lease_until, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp,
       CASE WHEN due_at > first_seen THEN CASE grp WHEN '' THEN 3 ELSE 4 END ELSE CASE grp WHEN '' THEN 7 ELSE 5 END END,
       seq, seq, 0, 0, due_at, NULL, due_at, expires_at, '', 0, NULL, 0, 1, '', first_seen
FROM {{message}} WHERE seq BETWEEN ?1 AND ?2;

-- name: ack
-- insert_done for plain leases that are current and whose content is; vacate, where
-- there are lanes, and delete_work follow. What it leaves goes the slow way. The plus
-- keeps the planner from walking all leases for each.
INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT w.seq, w.consumer, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, w.attempt + 1, ?5, ?4, 0, ?6, ?7, ?3, w.last_seen, 0
FROM json_each(?1) i CROSS JOIN {{work}} w ON w.seq = i.value
WHERE +w.stage = 9 AND w.guard = 0 AND w.owner = ?2 AND w.fence = ?3 AND w.revision = ?4;

-- name: ack_span
INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT seq, consumer, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, attempt + 1, ?6, ?5, 0, ?7, ?8, ?4, last_seen, 0
FROM {{work}}
WHERE seq BETWEEN +?1 AND +?2 AND +stage = 9 AND guard = 0 AND owner = ?3 AND fence = ?4 AND revision = ?5;

-- name: changes
-- How many rows the last statement wrote.
SELECT changes();

-- name: acked
-- Those that ack took, before their work rows go.
SELECT w.seq FROM json_each(?1) i CROSS JOIN {{work}} w ON w.seq = i.value
WHERE +w.stage = 9 AND w.guard = 0 AND w.owner = ?2 AND w.fence = ?3 AND w.revision = ?4;

-- name: lanes
SELECT EXISTS (SELECT 1 FROM {{lane}});

-- name: vacate
-- vacate_lanes by numbers of messages, whose work rows are still there. As an upsert,
-- like ready_following; were a lane not there, it would be made as a vacant one.
INSERT INTO {{lane}} (consumer, grp, head, position)
SELECT w.consumer, w.grp, NULL, w.seq FROM json_each(?1) i CROSS JOIN {{work}} w ON w.seq = i.value WHERE w.grp <> ''
ON CONFLICT (consumer, grp) DO UPDATE SET head = NULL WHERE head = excluded.position
RETURNING consumer;

-- name: lookup
SELECT m.consumer, m.source, m.id, m.seq, m.topic, m.grp, m.revision, m.hash, m.hash_alg, m.digest,
       CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE m.consumer = ?1 AND m.source = ?2 AND m.id = ?3;

-- name: lock_work
SELECT w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
FROM {{work}} w WHERE w.seq IN (SELECT value FROM json_each(?1));

-- name: exists_work
SELECT seq FROM {{work}} WHERE seq IN (SELECT value FROM json_each(?1));

-- name: lock_done
SELECT seq FROM {{done}} WHERE seq IN (SELECT value FROM json_each(?1));

-- name: positions
-- The first of the numbers that were taken. They are behind those of all messages,
-- also where tables were copied by hand.
UPDATE {{sequence}} SET n = max(n, coalesce((SELECT max(seq) FROM {{message}}), 0)) + ?1 RETURNING n - ?1 + 1;

-- name: insert_work
INSERT INTO {{work}} (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, retry, next, expires,
                      owner, fence, lease_until, guard, revision, last_error, last_seen)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20);

-- name: update_work
UPDATE {{work}}
SET consumer = ?2, topic = ?3, grp = ?4, stage = ?5, position = ?6, ready_position = ?7, attempt = ?8, lost = ?9,
    due = ?10, retry = ?11, next = ?12, expires = ?13, owner = ?14, fence = ?15, lease_until = ?16, guard = ?17,
    revision = ?18, last_error = ?19, last_seen = ?20
WHERE seq = ?1;

-- name: delete_work
DELETE FROM {{work}} WHERE seq IN (SELECT value FROM json_each(?1));

-- name: delete_work_span
DELETE FROM {{work}} WHERE seq BETWEEN +?1 AND +?2;

-- name: insert_done
INSERT INTO {{done}} (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12);

-- name: delete_done
DELETE FROM {{done}} WHERE seq IN (SELECT value FROM json_each(?1));

-- name: delete_message
DELETE FROM {{message}} WHERE seq IN (SELECT value FROM json_each(?1));

-- name: update_content
UPDATE {{message}}
SET revision = ?2, grp = CASE WHEN ?3 THEN ?4 ELSE grp END, topic = ?5, payload = ?6, headers = ?7,
    hash = ?8, hash_alg = ?9,
    digest = ?10, due_at = ?11, expires_at = ?12, occurred_at = ?13, correlation_id = ?14, causation_id = ?15
WHERE seq = ?1;

-- name: adopt_hash
UPDATE {{message}} SET hash = ?2, hash_alg = ?3 WHERE seq = ?1 AND hash IS NULL;

-- name: touch_work
UPDATE {{work}} SET last_seen = CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
WHERE seq IN (SELECT value FROM json_each(?1)) AND last_seen <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 - 1000000;

-- name: touch_done
UPDATE {{done}} SET last_seen = CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
WHERE seq IN (SELECT value FROM json_each(?1)) AND last_seen <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 - 1000000;

-- name: vacate_lanes
UPDATE {{lane}} SET head = NULL WHERE consumer = ?1 AND grp = ?2 AND head = ?3;

-- name: lane_heads
SELECT head FROM {{lane}} WHERE consumer = ?1 AND grp = ?2 AND head = ?3;

-- name: peek
SELECT EXISTS (SELECT 1 FROM {{work}} WHERE consumer = ?1 AND stage IN (3, 4) AND next <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000),
       EXISTS (
           -- Topic by topic: a paused one may have a great many messages.
           WITH RECURSIVE t (topic) AS (
               SELECT (SELECT min(topic) FROM {{work}} WHERE consumer = ?1 AND stage = 11)
               UNION ALL
               SELECT (SELECT min(w.topic) FROM {{work}} w WHERE w.consumer = ?1 AND w.stage = 11 AND w.topic > t.topic)
               FROM t WHERE t.topic IS NOT NULL
           )
           SELECT 1 FROM t WHERE t.topic IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM {{pause}} p WHERE p.consumer = ?1 AND p.topic = t.topic)
       ),
       EXISTS (SELECT 1 FROM {{work}} WHERE consumer = ?1 AND stage = 5),
       EXISTS (SELECT 1 FROM {{lane}} WHERE consumer = ?1 AND head IS NULL);

-- name: fallen
SELECT seq, stage FROM {{work}}
WHERE consumer = ?1 AND stage IN (3, 4) AND next <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
ORDER BY next, seq LIMIT ?2;

-- name: parked
SELECT w.seq, w.stage FROM {{work}} w
WHERE w.consumer = ?1 AND w.stage = 11
  AND NOT EXISTS (SELECT 1 FROM {{pause}} p WHERE p.consumer = w.consumer AND p.topic = w.topic)
ORDER BY w.ready_position LIMIT ?2;

-- name: arrive
UPDATE {{work}} SET stage = 5, position = ?2 WHERE seq = ?1;

-- name: ready_following
-- Messages become ready, with numbers that follow one another. The rows are there: it is
-- an upsert because no statistics can spoil its plan, as they can that of a join.
INSERT INTO {{work}} (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
SELECT value, '', '', '', 7, 0, ?2 + key, 0, 0, '', 0, 0, 1, '', 0 FROM json_each(?1) WHERE true
ON CONFLICT (seq) DO UPDATE SET stage = CASE WHEN lost >= 3 THEN 8 ELSE 7 END, ready_position = excluded.ready_position;

-- name: arrived_groups
SELECT DISTINCT grp FROM {{work}} WHERE consumer = ?1 AND stage = 5 ORDER BY grp LIMIT ?2;

-- name: insert_lanes
INSERT INTO {{lane}} (consumer, grp, head, position) VALUES (?1, ?2, NULL, 0) ON CONFLICT (consumer, grp) DO NOTHING;

-- name: lock_lanes
SELECT grp FROM {{lane}} WHERE consumer = ?1 AND grp = ?2;

-- name: arrivals
SELECT grp, seq, position FROM {{work}} WHERE consumer = +?1 AND grp = +?2 AND stage = 5 ORDER BY position LIMIT ?3;

-- name: enqueue
UPDATE {{work}} SET stage = 6 WHERE seq IN (SELECT value FROM json_each(?1));

-- name: lower_hint
UPDATE {{lane}} SET position = ?3 WHERE consumer = ?1 AND grp = ?2 AND position > ?3;

-- name: next_heads
-- Vacant lanes, each with its lowest queued message behind its last head.
SELECT l.grp, w.seq, w.position
FROM {{lane}} l LEFT JOIN {{work}} w ON w.seq = (
    SELECT q.seq FROM {{work}} q
    WHERE q.consumer = l.consumer AND q.grp = l.grp AND q.stage = 6 AND q.position >= l.position
    ORDER BY q.position LIMIT 1)
WHERE l.consumer = +?1 AND l.head IS NULL ORDER BY l.grp LIMIT ?2;

-- name: lowest_queued
SELECT grp, seq, position FROM {{work}}
WHERE consumer = +?1 AND grp = +?2 AND stage = 6 AND position >= +?3 ORDER BY position LIMIT 1;

-- name: set_heads_by_number
-- The lanes are there.
INSERT INTO {{lane}} (consumer, grp, head, position)
SELECT w.consumer, w.grp, w.seq, w.position FROM json_each(?1) i CROSS JOIN {{work}} w ON w.seq = i.value WHERE true
ON CONFLICT (consumer, grp) DO UPDATE SET head = excluded.head, position = excluded.position;

-- name: delete_lanes
DELETE FROM {{lane}} WHERE consumer = ?1 AND grp = ?2 AND head IS NULL;

-- name: claim
-- Reads what lease then leases. The plus signs keep the plan from depending on the
-- values: it would be made anew each time.
SELECT m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg, m.due_at, m.expires_at, m.occurred_at,
       m.correlation_id, m.causation_id, m.first_seen, m.revision,
       w.seq, w.ready_position, w.attempt, w.expires, w.fence, w.last_error, w.last_seen
FROM {{work}} w CROSS JOIN {{message}} m ON m.seq = w.seq
WHERE w.consumer = +?1 AND w.ready_position >= +?3 AND w.stage = 7 ORDER BY w.ready_position LIMIT ?2;

-- name: claim_suspect
SELECT m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg, m.due_at, m.expires_at, m.occurred_at,
       m.correlation_id, m.causation_id, m.first_seen, m.revision,
       w.seq, w.ready_position, w.attempt, w.expires, w.fence, w.last_error, w.last_seen
FROM {{work}} w CROSS JOIN {{message}} m ON m.seq = w.seq
WHERE w.consumer = +?1 AND w.ready_position >= +?3 AND w.stage = 8 ORDER BY w.ready_position LIMIT ?2;

-- name: lease
UPDATE {{work}} SET stage = 9, owner = ?2, fence = fence + 1, guard = 0, lease_until = ?3
WHERE seq IN (SELECT value FROM json_each(?1));

-- name: lease_span
UPDATE {{work}} SET stage = 9, owner = ?3, fence = fence + 1, guard = 0, lease_until = ?4
WHERE seq BETWEEN +?1 AND +?2;

-- name: messages
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq
FROM {{message}} m WHERE m.seq IN (SELECT value FROM json_each(?1));

-- name: expired_leases
SELECT w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, m.source, m.id
FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE w.consumer = ?1 AND w.stage = 9 AND w.lease_until <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000
ORDER BY w.lease_until, w.seq LIMIT ?2;

-- name: extend
UPDATE {{work}} SET lease_until = ?2 WHERE seq = ?1;

-- name: old_done
SELECT seq FROM {{done}}
WHERE consumer = ?1 AND purged = ?4 AND done_at <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 - ?2
ORDER BY done_at, seq LIMIT ?3;

-- name: purge_payloads
UPDATE {{message}} SET payload = NULL, headers = NULL WHERE seq IN (SELECT value FROM json_each(?1));

-- name: mark_purged
UPDATE {{done}} SET purged = true WHERE seq IN (SELECT value FROM json_each(?1));

-- name: get
SELECT m.consumer, m.source, m.id, m.grp, m.topic, m.payload, m.headers, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE m.consumer = ?1 AND m.source = ?2 AND m.id = ?3;

-- name: list_live
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN ?7 THEN m.payload END, CASE WHEN ?7 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE (?1 = '' OR w.consumer = ?1) AND w.seq > ?2
  AND (?3 = '' OR m.topic = ?3) AND (?4 = '' OR m.source = ?4) AND (?5 = '' OR m.grp = ?5)
  AND CASE ?6 WHEN 1 THEN w.stage = 1 WHEN 2 THEN w.stage NOT IN (1, 10) ELSE w.stage = 10 END
  AND (?9 = 0 OR max(m.first_seen, coalesce(m.due_at, 0)) < CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000 - ?9)
ORDER BY w.seq LIMIT ?8;

-- name: list_done
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN ?7 THEN m.payload END, CASE WHEN ?7 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{done}} d JOIN {{message}} m ON m.seq = d.seq
WHERE (?1 = '' OR d.consumer = ?1) AND d.seq > ?2
  AND (?3 = '' OR m.topic = ?3) AND (?4 = '' OR m.source = ?4) AND (?5 = '' OR m.grp = ?5)
  AND ?6 = 3
  AND (?9 IS NULL OR d.done_at >= ?9) AND (?10 IS NULL OR d.done_at < ?10)
ORDER BY d.seq LIMIT ?8;

-- name: list_all
SELECT m.consumer, m.source, m.id, m.grp, m.topic, CASE WHEN ?7 THEN m.payload END, CASE WHEN ?7 THEN m.headers END, m.hash, m.hash_alg,
       m.due_at, m.expires_at, m.occurred_at, m.correlation_id, m.causation_id, m.first_seen, m.revision, m.seq,
       w.seq, w.consumer, w.topic, w.grp, w.stage, w.position, w.ready_position, w.attempt, w.lost, w.due, w.retry, w.expires,
       w.owner, w.fence, w.lease_until, w.guard, w.revision, w.last_error, w.last_seen,
       d.seq, d.consumer, d.done_at, d.runs, d.handler, d.revision, d.superseded, d.discarded, d.note, d.fence, d.last_seen, d.purged
FROM {{message}} m LEFT JOIN {{work}} w ON w.seq = m.seq LEFT JOIN {{done}} d ON d.seq = m.seq
WHERE (?1 = '' OR m.consumer = ?1) AND m.seq > ?2
  AND (?3 = '' OR m.topic = ?3) AND (?4 = '' OR m.source = ?4) AND (?5 = '' OR m.grp = ?5)
  AND ?6 = 0
ORDER BY m.seq LIMIT ?8;

-- name: insert_audit
INSERT INTO {{audit}} (at, actor, action, reason, consumer, source, id, detail)
VALUES (CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, ?1, ?2, ?3, ?4, ?5, ?6, ?7);

-- name: audit
SELECT entry, at, actor, action, reason, consumer, source, id, detail FROM {{audit}}
WHERE (?1 = '' OR consumer = ?1) AND (?2 = 0 OR entry < ?2) ORDER BY entry DESC LIMIT ?3;

-- name: count
INSERT INTO {{total}} (consumer, topic, name, n) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (consumer, topic, name) DO UPDATE SET n = n + excluded.n;

-- name: totals
SELECT consumer, topic, name, n FROM {{total}} WHERE ?1 = '' OR consumer = ?1 ORDER BY consumer, topic, name;

-- name: live_counts
SELECT consumer, topic, stage, count(*) FROM {{work}} WHERE ?1 = '' OR consumer = ?1
GROUP BY consumer, topic, stage ORDER BY consumer, topic, stage;

-- name: oldest_waiting
SELECT m.first_seen FROM {{work}} w JOIN {{message}} m ON m.seq = w.seq
WHERE w.stage = 7 AND (?1 = '' OR w.consumer = ?1) ORDER BY w.ready_position LIMIT 1;

-- name: table_sizes
-- Rows are at most as many as the span of their numbers; counting them would
-- read the history. SQLite knows only the size of the whole file.
SELECT 'message', COALESCE((SELECT max(seq) FROM {{message}}) - (SELECT min(seq) FROM {{message}}) + 1, 0), 0, true
UNION ALL SELECT 'work', (SELECT count(*) FROM {{work}}), 0, false
UNION ALL SELECT 'done', COALESCE((SELECT max(seq) FROM {{done}}) - (SELECT min(seq) FROM {{done}}) + 1, 0), 0, true
UNION ALL SELECT 'lane', (SELECT count(*) FROM {{lane}}), 0, false
UNION ALL SELECT 'audit', COALESCE((SELECT max(entry) FROM {{audit}}) - (SELECT min(entry) FROM {{audit}}) + 1, 0), 0, true
UNION ALL SELECT 'database file', 0, (SELECT page_count FROM pragma_page_count()) * (SELECT page_size FROM pragma_page_size()), false;

-- name: pause
INSERT INTO {{pause}} (consumer, topic, at, actor, reason)
VALUES (?1, ?2, CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000, ?3, ?4)
ON CONFLICT (consumer, topic) DO NOTHING RETURNING topic;

-- name: resume
DELETE FROM {{pause}} WHERE consumer = ?1 AND topic = ?2 RETURNING topic;

-- name: paused
SELECT topic FROM {{pause}} WHERE consumer = ?1 ORDER BY topic;

-- name: version
SELECT coalesce(max(version), 0) FROM {{version}};

-- name: create_version
CREATE TABLE IF NOT EXISTS {{version}} (version INTEGER PRIMARY KEY, applied_at INTEGER NOT NULL DEFAULT (CAST(round(unixepoch('subsec') * 1000) AS INTEGER) * 1000));

-- name: insert_version
INSERT INTO {{version}} (version) VALUES (?1) ON CONFLICT (version) DO NOTHING;
