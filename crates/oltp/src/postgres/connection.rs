//! A connection that sends messages in batches and reads their answers together.
//!
//! Statements are prepared once. [`Connection::bind`] queues executions, and [`Connection::send`] sends the queue and
//! reads all answers: one round trip and, outside of `BEGIN`, one transaction. The client is our own because a
//! terminal is a thread that blocks until its answer arrives. A blocking socket with two system calls per batch is
//! enough for that; the existing drivers need an async runtime.
//!
//! # Not handled
//! TLS, cursors, notifications and binary `COPY`.
//!
//! Source: PostgreSQL documentation, chapter "Frontend/Backend Protocol", sections "Pipelining" and "COPY
//! Operations".

use super::address::{Address, Host};
use super::error::{PgError, unexpected, whole};
use crate::network::{self, Cut};
use crate::watchdog::{Registration, Watchdog};
use bytes::{Bytes, BytesMut};
use fallible_iterator::FallibleIterator;
use postgres_protocol::IsNull;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::backend::{DataRowBody, Message};
use postgres_protocol::message::frontend::{self, BindError};
use postgres_protocol::types::{
    ArrayDimension, array_to_sql, int2_to_sql, int4_to_sql, int8_to_sql, text_to_sql,
};
use std::error::Error;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;

/// Bytes per read.
const CHUNK: usize = 16 << 10;

/// The socket of a connection.
enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.write_all(bytes),
            Stream::Tcp(stream) => stream.write_all(bytes),
        }
    }
}

/// A prepared statement of a connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Statement(u32);

/// A parameter of a statement.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Small(i16),
    Int(i32),
    Long(i64),
    Text(&'a str),
    Smalls(&'a [i16]),
    Ints(&'a [i32]),
}

/// Type numbers of the catalogue `pg_type`.
mod oid {
    pub(super) const SMALL: u32 = 21;
    pub(super) const INT: u32 = 23;
}

/// A row of a result.
pub(super) struct Row(DataRowBody);

impl Row {
    /// The bytes of a column; `None` if it is null.
    pub(super) fn bytes(&self, column: usize) -> Result<Option<Bytes>, PgError> {
        match self.0.ranges().nth(column)? {
            Some(range) => Ok(range.map(|range| self.0.buffer_bytes().slice(range))),
            None => Err(unexpected("a row with fewer columns")),
        }
    }
    /// A column that holds an integer.
    pub(super) fn int(&self, column: usize) -> Result<i64, PgError> {
        whole(&self.bytes(column)?.ok_or_else(|| unexpected("a null"))?)
    }
}

/// A connection to a server.
pub(super) struct Connection {
    stream: Stream,
    input: BytesMut,
    chunk: Box<[u8]>,
    output: BytesMut,
    rows: Vec<Row>,
    /// Number of rows read when each statement of the last batch ended.
    ends: Vec<usize>,
    prepared: u32,
    round_trips: u64,
    in_transaction: bool,
    _registration: Option<Registration>,
}

impl Connection {
    /// Connects and logs in. `watchdog` cuts the connection after an interrupt. Names without a schema are looked up
    /// in `search_path`.
    pub(super) fn open(
        address: &Address,
        search_path: &str,
        watchdog: &Watchdog,
    ) -> Result<Connection, PgError> {
        let stream = match &address.host {
            Host::Socket(path) => UnixStream::connect(path)
                .map(Stream::Unix)
                .map_err(|error| PgError::Lost(format!("{}: {error}", path.display())))?,
            Host::Tcp(host, port) => {
                let failed = |error| PgError::Lost(format!("{host}:{port}: {error}"));
                let stream = network::connect(host, *port).map_err(failed)?;
                stream.set_read_timeout(Some(network::REACHED))?;
                Stream::Tcp(stream)
            }
        };
        let cut = match &stream {
            Stream::Unix(stream) => Cut::of(stream),
            Stream::Tcp(stream) => Cut::of(stream),
        };
        let mut connection = Connection {
            stream,
            input: BytesMut::with_capacity(CHUNK),
            chunk: vec![0; CHUNK].into(),
            output: BytesMut::with_capacity(CHUNK),
            rows: Vec::new(),
            ends: Vec::new(),
            prepared: 0,
            round_trips: 0,
            in_transaction: false,
            _registration: watchdog.connection(cut),
        };
        let parameters = [
            ("user", address.user.as_str()),
            ("database", &address.database),
            ("application_name", "lowtide"),
            ("client_encoding", "UTF8"),
            ("search_path", search_path),
        ];
        frontend::startup_message(parameters, &mut connection.output)?;
        connection.flush()?;
        connection.log_in(address)?;
        connection.answers()?;
        if let Stream::Tcp(stream) = &connection.stream {
            stream.set_read_timeout(None)?;
        }
        Ok(connection)
    }

    fn log_in(&mut self, address: &Address) -> Result<(), PgError> {
        let needed = || PgError::Lost("the server asks for a password, and none was given".to_owned());
        let password = || address.password.as_deref().map(str::as_bytes).ok_or_else(needed);
        let mut scram: Option<ScramSha256> = None;
        loop {
            match self.message()? {
                Message::AuthenticationOk => return Ok(()),
                Message::AuthenticationCleartextPassword => {
                    frontend::password_message(password()?, &mut self.output)?;
                }
                Message::AuthenticationMd5Password(body) => {
                    let hash = md5_hash(address.user.as_bytes(), password()?, body.salt());
                    frontend::password_message(hash.as_bytes(), &mut self.output)?;
                }
                Message::AuthenticationSasl(_) => {
                    let state = ScramSha256::new(password()?, ChannelBinding::unsupported());
                    frontend::sasl_initial_response(SCRAM_SHA_256, state.message(), &mut self.output)?;
                    scram = Some(state);
                }
                Message::AuthenticationSaslContinue(body) => {
                    let state = scram.as_mut().ok_or_else(|| unexpected("SASL"))?;
                    state.update(body.data())?;
                    frontend::sasl_response(state.message(), &mut self.output)?;
                }
                Message::AuthenticationSaslFinal(body) => {
                    scram.as_mut().ok_or_else(|| unexpected("SASL"))?.finish(body.data())?;
                }
                Message::ErrorResponse(body) => return Err(PgError::from_fields(body.fields())),
                _ => return Err(PgError::Lost("the server asks for a login of another kind".to_owned())),
            }
            self.flush()?;
        }
    }

    /// Prepares a statement; the server infers the types of its parameters.
    pub(super) fn prepare(&mut self, text: &str) -> Result<Statement, PgError> {
        self.prepared += 1;
        frontend::parse(&name(self.prepared), text, [], &mut self.output)?;
        let statement = Statement(self.prepared);
        self.send()?;
        Ok(statement)
    }

    /// Adds an execution to the next batch. All columns of the result come in binary.
    pub(super) fn bind(&mut self, statement: Statement, values: &[Value<'_>]) -> Result<(), PgError> {
        let output = &mut self.output;
        frontend::bind("", &name(statement.0), [1], values, |value, to| value.write(to), [1], output)
            .map_err(|error| match error {
                BindError::Conversion(error) => unexpected(&error.to_string()),
                BindError::Serialization(error) => error.into(),
            })?;
        frontend::execute("", 0, output)?;
        Ok(())
    }

    /// Sends the batch and waits for all answers.
    ///
    /// After an error the server skips the remaining statements of the batch.
    pub(super) fn send(&mut self) -> Result<(), PgError> {
        frontend::sync(&mut self.output);
        self.flush()?;
        self.answers()
    }

    /// The rows of the statement at index `place` of the last batch.
    pub(super) fn answer(&self, place: usize) -> &[Row] {
        let end = |place: usize| self.ends.get(place).copied().unwrap_or(self.rows.len());
        let begin = if place == 0 { 0 } else { end(place - 1) };
        &self.rows[begin..end(place)]
    }

    /// Runs statements separated by `;`. Returns the columns of all rows as text.
    pub(super) fn simple(&mut self, text: &str) -> Result<Vec<Vec<Option<String>>>, PgError> {
        frontend::query(text, &mut self.output)?;
        self.flush()?;
        self.answers()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let row = |row: &Row| -> Result<Vec<Option<String>>, PgError> {
            let buffer = row.0.buffer();
            Ok(row.0.ranges().map(|range| Ok(range.map(|range| text(&buffer[range])))).collect()?)
        };
        self.rows.iter().map(row).collect()
    }

    /// Begins a `COPY … FROM STDIN`. The rows are written to the returned [`Copy`].
    pub(super) fn copy(&mut self, text: &str) -> Result<Copy<'_>, PgError> {
        frontend::query(text, &mut self.output)?;
        self.flush()?;
        loop {
            match self.message()? {
                Message::CopyInResponse(_) => return Ok(Copy { connection: self }),
                Message::ErrorResponse(body) => {
                    let error = PgError::from_fields(body.fields());
                    self.answers()?;
                    return Err(error);
                }
                Message::ReadyForQuery(_) => return Err(unexpected("no COPY")),
                _ => {}
            }
        }
    }

    /// Returns whether a transaction is open, or has failed and is not rolled back yet.
    pub(super) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Number of round trips so far.
    pub(super) fn round_trips(&self) -> u64 {
        self.round_trips
    }

    fn flush(&mut self) -> Result<(), PgError> {
        let written = self.stream.write_all(&self.output);
        self.output.clear();
        Ok(written?)
    }

    /// Reads the answers to a batch. Returns the first error.
    fn answers(&mut self) -> Result<(), PgError> {
        self.rows.clear();
        self.ends.clear();
        self.round_trips += 1;
        let mut error = None;
        loop {
            match self.message() {
                Ok(Message::DataRow(body)) => self.rows.push(Row(body)),
                Ok(Message::CommandComplete(_) | Message::EmptyQueryResponse) => {
                    self.ends.push(self.rows.len())
                }
                Ok(Message::ErrorResponse(body)) => {
                    error.get_or_insert_with(|| PgError::from_fields(body.fields()));
                }
                Ok(Message::ReadyForQuery(body)) => {
                    self.in_transaction = body.status() != b'I';
                    return error.map_or(Ok(()), Err);
                }
                Ok(_) => {}
                // The server sends the reason before it closes the connection.
                Err(closed) => {
                    return Err(match error {
                        Some(PgError::Refused { message, .. } | PgError::Lost(message)) => {
                            PgError::Lost(message)
                        }
                        None => closed,
                    });
                }
            }
        }
    }

    fn message(&mut self) -> Result<Message, PgError> {
        loop {
            if let Some(message) = Message::parse(&mut self.input)? {
                return Ok(message);
            }
            match self.stream.read(&mut self.chunk) {
                Ok(0) => return Err(PgError::Lost("the server closed it".to_owned())),
                Ok(length) => self.input.extend_from_slice(&self.chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The socket has a time limit only during login.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Err(network::late().into()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.output.clear();
        frontend::terminate(&mut self.output);
        let _ = self.flush();
    }
}

/// The row stream of a `COPY`.
pub(super) struct Copy<'a> {
    connection: &'a mut Connection,
}

impl Write for Copy<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The server refuses larger messages; the caller writes again with the remaining bytes.
        let part = &bytes[..bytes.len().min(1 << 20)];
        let length = u32::try_from(part.len() + 4).expect("a part is at most a MiB");
        let mut head = [b'd', 0, 0, 0, 0];
        head[1..].copy_from_slice(&length.to_be_bytes());
        self.connection.stream.write_all(&head)?;
        self.connection.stream.write_all(part)?;
        Ok(part.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Copy<'_> {
    /// Ends the rows.
    pub(super) fn finish(self) -> Result<(), PgError> {
        frontend::copy_done(&mut self.connection.output);
        self.connection.flush()?;
        self.connection.answers()
    }
}

impl Value<'_> {
    fn write(&self, to: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Send + Sync>> {
        match self {
            Value::Small(value) => int2_to_sql(*value, to),
            Value::Int(value) => int4_to_sql(*value, to),
            Value::Long(value) => int8_to_sql(*value, to),
            Value::Text(value) => text_to_sql(value, to),
            Value::Smalls(values) => array(values, oid::SMALL, |value, to| int2_to_sql(*value, to), to)?,
            Value::Ints(values) => array(values, oid::INT, |value, to| int4_to_sql(*value, to), to)?,
        }
        Ok(IsNull::No)
    }
}

fn array<T>(
    values: &[T],
    of: u32,
    write: impl Fn(&T, &mut BytesMut),
    to: &mut BytesMut,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let dimension = ArrayDimension { len: i32::try_from(values.len())?, lower_bound: 1 };
    let each = |value: &T, to: &mut BytesMut| {
        write(value, to);
        Ok(IsNull::No)
    };
    array_to_sql([dimension], of, values, each, to)
}

/// The server-side name of a statement.
fn name(statement: u32) -> String {
    format!("s{statement}")
}
