module mockube.dev/mockube

go 1.22
