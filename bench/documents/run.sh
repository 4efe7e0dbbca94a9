#!/bin/sh
# Answers about generated documents, from the embedded base: trained centrally, and on
# devices, on the documents of the same senders; both scored on senders that neither has
# seen. Prints a table.
#
#   sh bench/documents/run.sh
