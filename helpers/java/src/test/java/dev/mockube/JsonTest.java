package dev.mockube;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {
    @ParameterizedTest
    @ValueSource(strings = {
        "{}", "[]", "{\"a\":[1,-2.5,true,false,null,{\"b\":\"\"}],\"c\":{}}", "\"\\\"\\\\\"", "1795874485908946", "[[],[[]]]",
    })
    void writesWhatItHasParsed(String text) {
        assertEquals(text, Json.write(Json.parse(text)));
    }

    @Test
    void escapesAreCharacters() {
        assertEquals("\u00e9\n\t/", Json.parse(" \"\\u00e9\\n\\t\\/\" "));
        assertEquals("\"\\u000a\"", Json.write("\n"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{", "[1", "{\"a\"}", "[1 2]", "\"a", "nul", "1 2", "\"\\u00", "{,}"})
    void invalidTextsAreRefused(String text) {
        assertThrows(IllegalArgumentException.class, () -> Json.parse(text));
    }
}
