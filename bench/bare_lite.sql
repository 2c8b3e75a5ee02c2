-- The row changes of Postroom, by hand, one transaction per call.

-- name: number
UPDATE postroom_sequence SET n = n + ?1 RETURNING n;

-- name: message
INSERT INTO postroom_message (seq, consumer, source, id, grp, topic, payload, hash_alg, correlation_id, causation_id, first_seen, revision)
VALUES (?1, 'bench', 'bench', ?2, '', 'bench', ?3, '', '', '', ?4, 1)
ON CONFLICT (consumer, source, id) DO NOTHING;

-- name: work
INSERT INTO postroom_work (seq, consumer, topic, grp, stage, position, ready_position, attempt, lost, owner, fence, guard, revision, last_error, last_seen)
VALUES (?1, 'bench', 'bench', '', 7, ?1, ?1, 0, 0, '', 0, 0, 1, '', ?2);

-- name: claim
UPDATE postroom_work SET stage = 9, owner = ?2, fence = fence + 1, lease_until = ?3
WHERE seq IN (SELECT seq FROM postroom_work WHERE consumer = 'bench' AND stage = 7 ORDER BY ready_position LIMIT ?1)
RETURNING seq;

-- name: content
SELECT seq, id, payload FROM postroom_message WHERE seq IN (SELECT value FROM json_each(?1));

-- name: done
INSERT INTO postroom_done (seq, consumer, done_at, runs, handler, revision, superseded, discarded, note, fence, last_seen, purged)
SELECT seq, 'bench', ?3, 1, 'bench', 1, 0, 0, '', fence, ?3, 0 FROM postroom_work
WHERE seq IN (SELECT value FROM json_each(?1)) AND stage = 9 AND owner = ?2;

-- name: settle
DELETE FROM postroom_work WHERE seq IN (SELECT value FROM json_each(?1)) AND stage = 9 AND owner = ?2;

-- name: reap
UPDATE postroom_work SET stage = 7, owner = '', lease_until = NULL, lost = lost + 1
WHERE consumer = 'bench' AND stage = 9 AND lease_until <= ?1;

-- name: lanes
INSERT INTO postroom_lane (consumer, grp, position)
SELECT DISTINCT consumer, grp, 0 FROM postroom_work WHERE stage = 5 ON CONFLICT DO NOTHING;

-- name: claim_heads
UPDATE postroom_work SET stage = 9, owner = ?2, fence = fence + 1, lease_until = ?3
WHERE seq IN (
    SELECT (SELECT w.seq FROM postroom_work w WHERE w.consumer = 'bench' AND w.grp = l.grp AND w.stage = 5 ORDER BY w.position LIMIT 1)
    FROM postroom_lane l
    WHERE l.consumer = 'bench' AND l.head IS NULL
      AND EXISTS (SELECT 1 FROM postroom_work w WHERE w.consumer = 'bench' AND w.grp = l.grp AND w.stage = 5)
    LIMIT ?1
)
RETURNING seq;

-- name: hold
UPDATE postroom_lane SET head = w.seq FROM postroom_work w
WHERE w.seq IN (SELECT value FROM json_each(?1)) AND postroom_lane.consumer = w.consumer AND postroom_lane.grp = w.grp;

-- name: vacate
UPDATE postroom_lane SET head = NULL FROM postroom_work w
WHERE w.seq IN (SELECT value FROM json_each(?1)) AND postroom_lane.consumer = w.consumer AND postroom_lane.grp = w.grp;
