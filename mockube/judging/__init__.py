"""The test that every operator should pass: twelve judgements, how each is made, and the reports of their findings."""
