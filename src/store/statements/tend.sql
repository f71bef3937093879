-- Leases that have ended come back; what is done and behind the mark goes.
SELECT paynotify.tend_consumers()
