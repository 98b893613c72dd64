"""Modules of simulated Python scripts that are written in Python, and interpreted as the scripts themselves."""

from textwrap import dedent
from typing import Final

LOGGING: Final = dedent("""
    import sys
    import time
    import os
    import traceback

    NOTSET, DEBUG, INFO, WARNING, ERROR, CRITICAL = 0, 10, 20, 30, 40, 50
    WARN, FATAL = WARNING, CRITICAL
    _names = {0: "NOTSET", 10: "DEBUG", 20: "INFO", 30: "WARNING", 40: "ERROR", 50: "CRITICAL"}
    _levels = {"NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARNING": 30, "WARN": 30, "ERROR": 40, "CRITICAL": 50, "FATAL": 50}
    _disabled = [0]
    BASIC_FORMAT = "%(levelname)s:%(name)s:%(message)s"

    def getLevelName(level):
        if isinstance(level, str):
            return _levels.get(level, "Level " + level)
        return _names.get(level, "Level %s" % level)

    def addLevelName(level, name):
        _names[level] = name
        _levels[name] = level

    def _level_of(level):
        if isinstance(level, str):
            if level not in _levels:
                raise ValueError("Unknown level: %r" % level)
            return _levels[level]
        return level

    class LogRecord:
        def __init__(self, name, level, message, args, exc_info, extra):
            self.name = name
            self.levelno = level
            self.levelname = getLevelName(level)
            self.msg = message
            self.args = args
            self.exc_info = exc_info
            self.created = time.time()
            self.msecs = int(self.created % 1 * 1000)
            self.process = os.getpid()
            self.processName = "MainProcess"
            self.thread = 140000000000000
            self.threadName = "MainThread"
            self.pathname = self.filename = sys.argv[0]
            self.module = sys.argv[0].split("/")[-1].replace(".py", "")
            self.funcName = "<module>"
            self.lineno = 0
            for key, value in (extra or {}).items():
                setattr(self, key, value)

        def getMessage(self):
            message = str(self.msg)
            if self.args:
                if len(self.args) == 1 and isinstance(self.args[0], dict) and self.args[0]:
                    return message % self.args[0]
                return message % self.args
            return message

    class Formatter:
        default_msec_format = "%s,%03d"

        def __init__(self, fmt=None, datefmt=None, style="%", validate=True):
            self._fmt = fmt or {"%": "%(message)s", "{": "{message}", "$": "${message}"}[style]
            self.datefmt = datefmt
            self._style = style

        def formatTime(self, record, datefmt=None):
            moment = time.gmtime(record.created)
            if datefmt:
                return time.strftime(datefmt, moment)
            return self.default_msec_format % (time.strftime("%Y-%m-%d %H:%M:%S", moment), record.msecs)

        def formatException(self, exc_info):
            return "".join(traceback.format_exception(exc_info[1])).rstrip("\\n")

        def format(self, record):
            record.message = record.getMessage()
            if "asctime" in self._fmt:
                record.asctime = self.formatTime(record, self.datefmt)
            values = record.__dict__
            text = self._fmt % values if self._style == "%" else self._fmt.format(**values)
            if record.exc_info and record.exc_info[1] is not None:
                text = text + "\\n" + self.formatException(record.exc_info)
            return text

    class Filterer:
        pass

    class Handler:
        def __init__(self, level=NOTSET):
            self.level = _level_of(level)
            self.formatter = None
            self.filters = []

        def setLevel(self, level):
            self.level = _level_of(level)

        def setFormatter(self, formatter):
            self.formatter = formatter

        def addFilter(self, filter):
            self.filters.append(filter)

        def format(self, record):
            return (self.formatter or _default).format(record)

        def handle(self, record):
            for filter in self.filters:
                passes = filter(record) if callable(filter) else filter.filter(record)
                if not passes:
                    return
            self.emit(record)

        def emit(self, record):
            raise NotImplementedError("emit must be implemented by Handler subclasses")

        def flush(self):
            pass

        def close(self):
            pass

    _default = Formatter()

    class StreamHandler(Handler):
        terminator = "\\n"

        def __init__(self, stream=None):
            super().__init__()
            self.stream = stream or sys.stderr

        def emit(self, record):
            self.stream.write(self.format(record) + self.terminator)
            self.flush()

        def flush(self):
            self.stream.flush()

    class FileHandler(StreamHandler):
        def __init__(self, filename, mode="a", encoding=None, delay=False):
            super().__init__(open(filename, mode))

    class NullHandler(Handler):
        def emit(self, record):
            pass

    class Logger:
        def __init__(self, name, level=NOTSET):
            self.name = name
            self.level = _level_of(level)
            self.parent = None
            self.propagate = True
            self.handlers = []
            self.filters = []
            self.disabled = False

        def setLevel(self, level):
            self.level = _level_of(level)

        def addHandler(self, handler):
            if handler not in self.handlers:
                self.handlers.append(handler)

        def removeHandler(self, handler):
            if handler in self.handlers:
                self.handlers.remove(handler)

        def addFilter(self, filter):
            self.filters.append(filter)

        def hasHandlers(self):
            logger = self
            while logger:
                if logger.handlers:
                    return True
                logger = logger.parent
            return False

        def getEffectiveLevel(self):
            logger = self
            while logger:
                if logger.level:
                    return logger.level
                logger = logger.parent
            return NOTSET

        def isEnabledFor(self, level):
            return not self.disabled and level > _disabled[0] and level >= self.getEffectiveLevel()

        def getChild(self, suffix):
            return getLogger(suffix if self.name == "root" else self.name + "." + suffix)

        def log(self, level, message, *args, exc_info=None, extra=None, stack_info=False, stacklevel=1):
            if not self.isEnabledFor(level):
                return
            if exc_info is True:
                exc_info = sys.exc_info()
            elif isinstance(exc_info, BaseException):
                exc_info = (type(exc_info), exc_info, None)
            record = LogRecord(self.name, level, message, args, exc_info, extra)
            found = False
            logger = self
            while logger:
                for handler in logger.handlers:
                    found = True
                    if level >= handler.level:
                        handler.handle(record)
                if not logger.propagate:
                    break
                logger = logger.parent
            if not found and level >= WARNING:
                sys.stderr.write(_default.format(record) + "\\n")

        def debug(self, message, *args, **kwargs):
            self.log(DEBUG, message, *args, **kwargs)

        def info(self, message, *args, **kwargs):
            self.log(INFO, message, *args, **kwargs)

        def warning(self, message, *args, **kwargs):
            self.log(WARNING, message, *args, **kwargs)

        warn = warning

        def error(self, message, *args, **kwargs):
            self.log(ERROR, message, *args, **kwargs)

        def critical(self, message, *args, **kwargs):
            self.log(CRITICAL, message, *args, **kwargs)

        fatal = critical

        def exception(self, message, *args, exc_info=None, **kwargs):
            self.log(ERROR, message, *args, exc_info=exc_info or sys.exc_info(), **kwargs)

    root = Logger("root", WARNING)
    _loggers = {}

    def getLogger(name=None):
        if not name or name == "root":
            return root
        if name not in _loggers:
            logger = Logger(name)
            outer = name.rpartition(".")[0]
            logger.parent = getLogger(outer) if outer else root
            _loggers[name] = logger
        return _loggers[name]

    def basicConfig(level=None, format=None, datefmt=None, stream=None, filename=None, filemode="a", handlers=None, force=False, style="%", encoding=None):
        if force:
            root.handlers.clear()
        if root.handlers:
            return
        if handlers is None:
            handlers = [FileHandler(filename, filemode) if filename else StreamHandler(stream)]
        formatter = Formatter(format or BASIC_FORMAT, datefmt, style)
        for handler in handlers:
            if handler.formatter is None:
                handler.setFormatter(formatter)
            root.addHandler(handler)
        if level is not None:
            root.setLevel(level)

    def disable(level=CRITICAL):
        _disabled[0] = level

    def shutdown():
        pass

    def _at_root(name):
        def write(message, *args, **kwargs):
            if not root.handlers:
                basicConfig()
            getattr(root, name)(message, *args, **kwargs)
        return write

    debug, info, warning, error, critical, exception = [
        _at_root(name) for name in ("debug", "info", "warning", "error", "critical", "exception")
    ]
    warn, fatal = warning, critical

    def log(level, message, *args, **kwargs):
        if not root.handlers:
            basicConfig()
        root.log(level, message, *args, **kwargs)
""")

DATACLASSES: Final = dedent("""
    _missing = object()

    class _Field:
        def __init__(self, default, default_factory):
            self.default = default
            self.default_factory = default_factory

    def field(default=_missing, default_factory=_missing, **options):
        return _Field(default, default_factory)

    def _make(cls):
        names = []
        for base in reversed(cls.__mro__):
            for name in getattr(base, "__annotations__", {}):
                if name not in names:
                    names.append(name)

        def __init__(self, *args, **kwargs):
            if len(args) > len(names):
                raise TypeError(f"{cls.__name__}.__init__() takes {len(names) + 1} positional arguments but {len(args) + 1} were given")
            values = dict(zip(names, args))
            for name in kwargs:
                if name not in names:
                    raise TypeError(f"{cls.__name__}.__init__() got an unexpected keyword argument '{name}'")
            values.update(kwargs)
            missing = []
            for name in names:
                if name in values:
                    setattr(self, name, values[name])
                    continue
                default = getattr(cls, name, _missing)
                if isinstance(default, _Field):
                    default = default.default_factory() if default.default_factory is not _missing else default.default
                if default is _missing:
                    missing.append(repr(name))
                else:
                    setattr(self, name, default)
            if missing:
                listed = missing[0] if len(missing) == 1 else ", ".join(missing[:-1]) + (", and " if len(missing) > 2 else " and ") + missing[-1]
                raise TypeError(f"{cls.__name__}.__init__() missing {len(missing)} required positional argument{'s' if len(missing) > 1 else ''}: {listed}")
            if hasattr(self, "__post_init__"):
                self.__post_init__()

        def __repr__(self):
            return cls.__name__ + "(" + ", ".join(f"{name}={getattr(self, name)!r}" for name in names) + ")"

        def __eq__(self, other):
            if type(other) is not type(self):
                return NotImplemented
            return all(getattr(self, name) == getattr(other, name) for name in names)

        cls.__init__ = __init__
        cls.__eq__ = __eq__
        cls.__dataclass_names__ = names
        if not hasattr(cls, "__repr__"):
            cls.__repr__ = __repr__
        return cls

    def dataclass(cls=None, **options):
        return _make if cls is None else _make(cls)

    def asdict(value):
        if hasattr(value, "__dataclass_names__"):
            return {name: asdict(getattr(value, name)) for name in value.__dataclass_names__}
        if isinstance(value, list):
            return [asdict(item) for item in value]
        if isinstance(value, dict):
            return {key: asdict(item) for key, item in value.items()}
        return value
""")

CONTEXTLIB: Final = dedent("""
    class _Manager:
        def __init__(self, generator):
            self.generator = generator

        def __enter__(self):
            return next(self.generator)

        def __exit__(self, kind, value, trace):
            if value is None:
                next(self.generator, None)
                return False
            try:
                self.generator.throw(value)
            except StopIteration:
                return True
            return False

    def contextmanager(function):
        def manager(*args, **kwargs):
            return _Manager(function(*args, **kwargs))
        return manager

    class suppress:
        def __init__(self, *kinds):
            self.kinds = kinds

        def __enter__(self):
            return None

        def __exit__(self, kind, value, trace):
            return kind is not None and issubclass(kind, self.kinds)
""")

SOURCES: Final = {"logging": LOGGING, "dataclasses": DATACLASSES, "contextlib": CONTEXTLIB}
