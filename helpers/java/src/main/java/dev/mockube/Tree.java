package dev.mockube;

import java.util.List;
import java.util.Map;

/** An object in JSON, whose fields are read by their names. A field that does not exist is empty. */
public record Tree(Map<?, ?> fields) {
    static final Tree EMPTY = new Tree(Map.of());

    static Tree parse(String text) {
        if (Json.parse(text) instanceof Map<?, ?> map) {
            return new Tree(map);
        }
        throw new IllegalArgumentException("it is no object: " + text);
    }

    /** Returns the value of a field; null without it. */
    public Object get(String name) {
        return fields.get(name);
    }

    /** Returns the object of a field. */
    public Tree tree(String name) {
        return fields.get(name) instanceof Map<?, ?> map ? new Tree(map) : EMPTY;
    }

    /** Returns the objects of a list. */
    public List<Tree> trees(String name) {
        if (!(fields.get(name) instanceof List<?> items)) {
            return List.of();
        }
        return items.stream().map(item -> item instanceof Map<?, ?> map ? new Tree(map) : EMPTY).toList();
    }

    /** Returns the text of a field. */
    public String text(String name) {
        Object value = fields.get(name);
        return value == null ? "" : value.toString();
    }

    /** Returns the whole number of a field. */
    public long number(String name) {
        return fields.get(name) instanceof Number number ? number.longValue() : 0;
    }

    @Override
    public String toString() {
        return Json.write(fields);
    }
}
