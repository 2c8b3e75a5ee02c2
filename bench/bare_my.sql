-- The row changes of Postroom on MariaDB, by hand, one transaction per call.
-- Numbers come from a sequence of the server's own.

-- name: number
SELECT NEXTVAL(bench_sequence) * 1000;

-- name: message
INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
VALUES (NEXTVAL(bench_sequence) * 1000, 'bench', 'bench', ?, '', 'bench', ?, '', '', '', ?, 1)
ON DUPLICATE KEY UPDATE revision = postroom_message.revision;

-- name: work
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
VALUES (LASTVAL(bench_sequence) * 1000, 'bench', 'bench', '', 7, LASTVAL(bench_sequence) * 1000, LASTVAL(bench_sequence) * 1000, 0, 0, '', 0, 0, 1, '', ?);

-- name: messages
INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
VALUES {{rows}}
ON DUPLICATE KEY UPDATE revision = postroom_message.revision;

-- name: works
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
SELECT seq, 'bench', 'bench', '', 7, seq, seq, 0, 0, '', 0, 0, 1, '', first_seen FROM postroom_message WHERE seq BETWEEN ? AND ?;

-- name: claim
SELECT w.seq, m.id, m.payload FROM postroom_work w FORCE INDEX (shelf)
STRAIGHT_JOIN postroom_message m FORCE INDEX (seq) ON m.seq = w.seq
WHERE w.consumer = 'bench' AND w.shelf = 7 AND w.line = ''
ORDER BY w.turn LIMIT ? FOR UPDATE SKIP LOCKED;

-- name: claim_heads
SELECT h.seq, m.id, m.payload FROM (
    SELECT (SELECT w.seq FROM postroom_work w FORCE INDEX (shelf)
            WHERE w.consumer = 'bench' AND w.shelf = 5 AND w.line = l.grp ORDER BY w.turn LIMIT 1) AS seq
    FROM JSON_TABLE(?, '$[*]' COLUMNS (grp VARCHAR(255) PATH '$')) AS l
) AS h JOIN postroom_message m ON m.seq = h.seq;

-- name: free
SELECT l.grp FROM postroom_lane l FORCE INDEX (vacant)
WHERE l.consumer = 'bench' AND l.head IS NULL
  AND EXISTS (SELECT 1 FROM postroom_work w WHERE w.consumer = 'bench' AND w.shelf = 5 AND w.line = l.grp)
LIMIT ? FOR UPDATE SKIP LOCKED;

-- name: lease
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS i STRAIGHT_JOIN postroom_work w ON w.seq = i.seq
SET w.stage = 9, w.owner = ?, w.fence = w.fence + 1, w.lease_until = ?;

-- name: hold
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS i STRAIGHT_JOIN postroom_work w ON w.seq = i.seq
STRAIGHT_JOIN postroom_lane l ON l.consumer = w.consumer AND l.grp = w.grp
SET l.head = w.seq;

-- name: vacate
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS i STRAIGHT_JOIN postroom_work w ON w.seq = i.seq
STRAIGHT_JOIN postroom_lane l ON l.consumer = w.consumer AND l.grp = w.grp
SET l.head = NULL;

-- name: done
INSERT INTO postroom_done (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT w.seq, 'bench', ?, 1, 'bench', 1, 0, 0, '', w.fence, ?, 0
FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS i STRAIGHT_JOIN postroom_work w ON w.seq = i.seq
WHERE w.stage = 9 AND w.owner = ?;

-- name: settle
DELETE w FROM JSON_TABLE(?, '$[*]' COLUMNS (seq BIGINT PATH '$')) AS i STRAIGHT_JOIN postroom_work w ON w.seq = i.seq
WHERE w.stage = 9 AND w.owner = ?;

-- name: reap
UPDATE postroom_work SET stage = 7, owner = '', lease_until = NULL, lost = lost + 1
WHERE consumer = 'bench' AND shelf = 9 AND line = '' AND turn <= ?;

-- name: lanes
INSERT INTO postroom_lane (consumer, grp, position)
SELECT DISTINCT consumer, grp, 0 FROM postroom_work WHERE consumer = 'bench' AND shelf = 5
ON DUPLICATE KEY UPDATE position = postroom_lane.position;
