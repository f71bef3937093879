/*
 * The SQL of statements/, one constant a file (made by embed.cmake). Some are
 * there twice: the _resubmitted form writes no second receipt for a request
 * that has one already.
 */
#ifndef PN_STORE_STATEMENTS_H
#define PN_STORE_STATEMENTS_H

extern const char pn_sql_actions[];
extern const char pn_sql_archive[];
extern const char pn_sql_attempts[];
extern const char pn_sql_claims_claim[];
extern const char pn_sql_claims_listen[];
extern const char pn_sql_claims_notify[];
extern const char pn_sql_claims_session[];
extern const char pn_sql_claims_settle[];
extern const char pn_sql_consumer_remove[];
extern const char pn_sql_consumer_state[];
extern const char pn_sql_consumers[];
extern const char pn_sql_deliveries[];
extern const char pn_sql_delivery[];
extern const char pn_sql_delivery_seqs[];
extern const char pn_sql_event[];
extern const char pn_sql_events_newest[];
extern const char pn_sql_events_oldest[];
extern const char pn_sql_evidence[];
extern const char pn_sql_evidence_estimate[];
extern const char pn_sql_evidence_of[];
extern const char pn_sql_figures[];
extern const char pn_sql_guard_forget[];
extern const char pn_sql_guard_key[];
extern const char pn_sql_guard_key_actions[];
extern const char pn_sql_guard_keys[];
extern const char pn_sql_guard_scopes[];
extern const char pn_sql_guard_set_free[];
extern const char pn_sql_handoff_disable[];
extern const char pn_sql_handoff_endpoint[];
extern const char pn_sql_handoff_events[];
extern const char pn_sql_handoff_listen[];
extern const char pn_sql_handoff_session[];
extern const char pn_sql_handoff_settle[];
extern const char pn_sql_handoff_take[];
extern const char pn_sql_ingest[];
extern const char pn_sql_ingest_one[];
extern const char pn_sql_ingest_resubmitted[];
extern const char pn_sql_keys[];
extern const char pn_sql_notifier[];
extern const char pn_sql_notify[];
extern const char pn_sql_operator[];
extern const char pn_sql_partitions[];
extern const char pn_sql_quarantine[];
extern const char pn_sql_quarantine_entry[];
extern const char pn_sql_quarantine_list[];
extern const char pn_sql_quarantine_resubmitted[];
extern const char pn_sql_reader[];
extern const char pn_sql_receipts[];
extern const char pn_sql_redeliver[];
extern const char pn_sql_refuse[];
extern const char pn_sql_retention[];
extern const char pn_sql_retention_session[];
extern const char pn_sql_schema[];
extern const char pn_sql_session[];
extern const char pn_sql_settings[];
extern const char pn_sql_skip[];
extern const char pn_sql_snapshot[];
extern const char pn_sql_stats[];
extern const char pn_sql_tend[];
extern const char pn_sql_traffic[];

#endif
