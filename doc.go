// Package postroom holds the nouns of the inbox pattern and the transactional
// outbox: a Message and its Key, the Lease under which it is worked on, the
// verdict of a Handler, and the errors that callers branch on.
//
// The packages inbox and outbox give them verbs; a store package (sqlstore,
// pgxstore, memstore) keeps them.
package postroom
