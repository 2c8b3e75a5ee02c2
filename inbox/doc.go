// Package inbox admits each message once and sees it through. An Inbox works in
// three modes, which can be mixed on one message:
//
//   - Once runs your writes and the mark in one transaction: both commit or
//     neither. OnceTx does so in a transaction of yours.
//   - Guard marks first and then runs what lies outside the database: at most
//     once, unless ReleaseOnError is set.
//   - Receive keeps the message, and a Worker handles it later, with leases,
//     retries, dead letters and order within a group. A transactional handler's
//     writes commit with the message's being done.
//
// A message is known by its consumer, source and ID. The consumer is the name of
// the inbox, so that two modules of a program can each process the same message.
//
// What to answer a sender: acknowledge if and only if the error is nil. After
// postroom.ErrInProgress and postroom.ErrUnknown it tries again, and a repetition
// is recognised. Once and Guard give postroom.ErrDead for a message that failed
// for good before; nothing changes by delivering it again, so acknowledge it, as
// Idempotent does.
//
// A handler's error is its verdict: nil is success, any error is tried again with
// backoff, and postroom.Permanent, postroom.RetryAfter and postroom.Discard say
// more. Rules give verdicts to errors that you did not make.
//
// Nothing runs by itself but what you start: Worker.Run handles messages and ends
// the leases of processes that died, RunCleanup removes what is past its
// retention.
package inbox
