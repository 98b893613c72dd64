package dev.mockube;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** JSON as maps, lists, strings, numbers and booleans, because Java has none. Numbers are Long or Double. */
final class Json {
    private final String text;
    private int position;

    private Json(String text) {
        this.text = text;
    }

    static Object parse(String text) {
        Json parser = new Json(text);
        Object value = parser.value();
        if (parser.peek() != 0) {
            throw parser.invalid();
        }
        return value;
    }

    static String write(Object value) {
        StringBuilder out = new StringBuilder();
        write(value, out);
        return out.toString();
    }

    private static void write(Object value, StringBuilder out) {
        if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(separator);
                quote(String.valueOf(entry.getKey()), out);
                out.append(':');
                write(entry.getValue(), out);
                separator = ",";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof Iterable<?> items) {
            String separator = "";
            out.append('[');
            for (Object item : items) {
                out.append(separator);
                write(item, out);
                separator = ",";
            }
            out.append(']');
        } else if (value instanceof Number || value instanceof Boolean || value == null) {
            out.append(value);
        } else {
            quote(value.toString(), out);
        }
    }

    private static void quote(String value, StringBuilder out) {
        out.append('"');
        for (char character : value.toCharArray()) {
            if (character == '"' || character == '\\') {
                out.append('\\').append(character);
            } else if (character < ' ') {
                out.append(String.format("\\u%04x", (int) character));
            } else {
                out.append(character);
            }
        }
        out.append('"');
    }

    private Object value() {
        switch (peek()) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            default:
                return literal();
        }
    }

    private Map<String, Object> object() {
        Map<String, Object> object = new LinkedHashMap<>();
        take('{');
        while (peek() != '}') {
            if (!object.isEmpty()) {
                take(',');
            }
            String name = string();
            take(':');
            object.put(name, value());
        }
        take('}');
        return object;
    }

    private List<Object> array() {
        List<Object> array = new ArrayList<>();
        take('[');
        while (peek() != ']') {
            if (!array.isEmpty()) {
                take(',');
            }
            array.add(value());
        }
        take(']');
        return array;
    }

    private String string() {
        take('"');
        StringBuilder string = new StringBuilder();
        while (next() != '"') {
            char character = text.charAt(position++);
            string.append(character == '\\' ? escaped() : character);
        }
        position++;
        return string.toString();
    }

    private char escaped() {
        char character = next();
        position++;
        switch (character) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                position += 4;
                if (position > text.length()) {
                    throw invalid();
                }
                return (char) Integer.parseInt(text, position - 4, position, 16);
            default:
                return character;
        }
    }

    private Object literal() {
        int start = position;
        while (position < text.length() && "{}[],:\" \t\r\n".indexOf(text.charAt(position)) < 0) {
            position++;
        }
        String literal = text.substring(start, position);
        switch (literal) {
            case "null":
                return null;
            case "true":
            case "false":
                return Boolean.valueOf(literal);
            default:
                return number(literal);
        }
    }

    private Number number(String literal) {
        try {
            if (literal.chars().anyMatch(character -> ".eE".indexOf(character) >= 0)) {
                return Double.valueOf(literal);
            }
            return Long.valueOf(literal);
        } catch (NumberFormatException error) {
            throw invalid();
        }
    }

    private void take(char expected) {
        if (peek() != expected) {
            throw invalid();
        }
        position++;
    }

    /** Skips spaces, and returns the next character; 0 at the end. */
    private char peek() {
        while (position < text.length() && Character.isWhitespace(text.charAt(position))) {
            position++;
        }
        return position < text.length() ? text.charAt(position) : 0;
    }

    private char next() {
        if (position >= text.length()) {
            throw invalid();
        }
        return text.charAt(position);
    }

    private IllegalArgumentException invalid() {
        return new IllegalArgumentException("invalid JSON at character " + position);
    }
}
