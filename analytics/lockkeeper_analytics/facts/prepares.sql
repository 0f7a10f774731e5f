-- The records that prepare transactions; `settled` is where the outcome is, null where there is none.
SELECT directory, transaction, settled, file_id FROM transaction_records WHERE kind = 'prepare'
