module keyhold/bench/mixed

go 1.20
