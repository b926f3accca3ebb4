"""The exit statuses of the command line."""

FINE = 0
NO = 1  # the answer is no: a claim does not follow, a proof was asked for and not found
WRONG = 2  # the call or the input is wrong
INTERRUPTED = 130  # as a shell reports a program ended by SIGINT
UNREAD = 141  # as a shell reports a program ended by SIGPIPE
