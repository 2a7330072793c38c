module chime_bench_go

go 1.19
