-- Algorithms of signing keys that a node can use. Servers of release 0.2 and earlier know EdDSA only and do not write this column: while
-- one of them has a lease, no signing key with another algorithm is created (`keyhold signing-keys rotate`).
ALTER TABLE nodes ADD COLUMN signing_algorithms text[] NOT NULL DEFAULT '{EdDSA}';
