module mockube/tools/certificates

go 1.26
