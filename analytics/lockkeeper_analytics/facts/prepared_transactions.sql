-- Transactions that are prepared and have no outcome.
SELECT DISTINCT directory, transaction
FROM transaction_files WHERE settled IS NULL AND is_prepared
