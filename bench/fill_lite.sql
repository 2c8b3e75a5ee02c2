-- Rows as intake and workers would have left them.

-- name: message
WITH RECURSIVE new(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM new WHERE n < {{n}})
INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
SELECT n + (SELECT n FROM postroom_sequence), 'bench', 'fill', printf('%036d', n + (SELECT n FROM postroom_sequence)), {{group}}, 'bench',
       CAST(printf('%.256c', 'a') AS BLOB), '', '', '', unixepoch() * 1000000, 1
FROM new;

-- name: ready
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp, 7, seq, seq, 0, 0, '', 0, 0, 1, '', first_seen FROM postroom_message WHERE seq > (SELECT n FROM postroom_sequence);

-- name: arrived
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp, 5, seq, seq, 0, 0, '', 0, 0, 1, '', first_seen FROM postroom_message WHERE seq > (SELECT n FROM postroom_sequence);

-- name: queued
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp, 6, seq, seq, 0, 0, '', 0, 0, 1, '', first_seen FROM postroom_message WHERE seq > (SELECT n FROM postroom_sequence);

-- name: head
UPDATE postroom_work SET stage = 3, attempt = 1, retry = last_seen + 604800000000, next = last_seen + 604800000000
WHERE seq = (SELECT min(seq) FROM postroom_work WHERE stage = 6);

-- name: lane
INSERT INTO postroom_lane (consumer, grp, head, position) SELECT consumer, grp, seq, position FROM postroom_work WHERE stage = 3;

-- name: scheduled
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, next, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp, 3, seq, seq, 0, 0, first_seen + 604800000000, first_seen + 604800000000, '', 0, 0, 1, '', first_seen
FROM postroom_message WHERE seq > (SELECT n FROM postroom_sequence);

-- name: finished
INSERT INTO postroom_done (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT seq, consumer, first_seen, 1, 'bench', 1, 0, 0, '', 1, first_seen, 0 FROM postroom_message WHERE seq > (SELECT n FROM postroom_sequence);

-- name: sequence
UPDATE postroom_sequence SET n = (SELECT max(seq) FROM postroom_message);
