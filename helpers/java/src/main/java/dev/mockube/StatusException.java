package dev.mockube;

/** The error that the server returned. */
public final class StatusException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final int code;
    private final String reason;

    StatusException(int code, String reason, String message) {
        super(message);
        this.code = code;
        this.reason = reason;
    }

    /** Returns the status code, such as 409. */
    public int code() {
        return code;
    }

    /** Returns the reason, such as Conflict; empty if a fault has replaced the response. */
    public String reason() {
        return reason;
    }
}
