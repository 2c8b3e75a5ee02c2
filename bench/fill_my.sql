-- Rows as intake and workers would have left them, written by the server itself.

-- name: ticket
INSERT INTO postroom_sequence () VALUES ();

-- name: message
INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
SELECT {{first}} + seq, 'bench', 'fill', LPAD({{first}} + seq, 36, '0'), {{group}}, 'bench', REPEAT('abcdefgh', 32), '', '', '', UNIX_TIMESTAMP() * 1000000, 1
FROM seq_1_to_{{n}};

-- name: ready
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp, 7, seq, seq, 0, 0, '', 0, 0, 1, '', first_seen FROM postroom_message WHERE seq > {{first}} ORDER BY seq;

-- name: arrived
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp, 5, seq, seq, 0, 0, '', 0, 0, 1, '', first_seen FROM postroom_message WHERE seq > {{first}} ORDER BY seq;

-- name: queued
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp, 6, seq, seq, 0, 0, '', 0, 0, 1, '', first_seen FROM postroom_message WHERE seq > {{first}} ORDER BY seq;

-- name: head
UPDATE postroom_work SET stage = 3, attempt = 1, retry = last_seen + 604800000000, next = last_seen + 604800000000 WHERE seq = {{first}} + 1;

-- name: lane
INSERT INTO postroom_lane (consumer, grp, head, position) SELECT consumer, grp, seq, position FROM postroom_work WHERE seq = {{first}} + 1;

-- name: scheduled
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, due, next, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, consumer, topic, grp, 3, seq, seq, 0, 0, first_seen + 604800000000, first_seen + 604800000000, '', 0, 0, 1, '', first_seen
FROM postroom_message WHERE seq > {{first}} ORDER BY seq;

-- name: finished
INSERT INTO postroom_done (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT seq, consumer, first_seen, 1, 'bench', 1, 0, 0, '', 1, first_seen, 0 FROM postroom_message WHERE seq > {{first}} ORDER BY seq;

-- name: sequence
ALTER TABLE postroom_sequence AUTO_INCREMENT = {{next}};

-- name: analyze
ANALYZE TABLE postroom_message, postroom_work, postroom_done, postroom_lane;
