package dev.mockube;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

class ReportTest {
    @Test
    void changeWithoutPatchTimeAndAuthorHasLine() {
        Change change = Change.of(Tree.parse("{\"spec\": {\"revision\": 7, \"type\": \"MODIFIED\","
                + " \"object\": {\"kind\": \"ConfigMap\", \"namespace\": \"default\", \"name\": \"large\"},"
                + " \"patchOmitted\": \"it is larger than 32768 bytes\"}}"));
        assertEquals(
                "--:--:--.--- MODIFIED ConfigMap default/large (the author is not known)\n"
                        + "        no patch: it is larger than 32768 bytes",
                Report.line(change));
    }
}
