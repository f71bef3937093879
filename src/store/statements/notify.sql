-- There are new events.
NOTIFY paynotify_events
