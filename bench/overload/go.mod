module keyhold/bench/overload

go 1.22
