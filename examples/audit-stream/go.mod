module keyhold.test/audit-stream

go 1.26.0
