module tickthrottle.example/fanout

go 1.24
