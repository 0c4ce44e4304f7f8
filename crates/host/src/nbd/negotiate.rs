//! The handshake of the protocol ([`negotiate`]): fixed newstyle, from the greeting to the choice of an export.
//!
//! Source: github.com/NetworkBlockDevice/nbd, doc/proto.md, "Handshake" and "Option types". Decisions that the text
//! leaves open:
//!
//! - An export with blocks larger than 512 bytes requires a client that asks for block sizes. With blocks of 512
//!   bytes, every client is served, and a client that did not ask may use any offset and length.
//! - With the maximum number of clients, a client that chooses an export gets an error and is dropped. Clients that
//!   only look at exports do not count.
//! - A client without the flag for fixed newstyle may only choose an export by name.
//! - An unknown name in an option without a reply ends the connection, as the protocol demands.
//!
//! # Not supported
//! Long headers (EXTENDED_HEADERS), and TLS for some exports only.

use super::conversation::Conversation;
use super::ended::Ended;
use super::export::Export;
use super::meta_context;
use super::options::{self, ContextQueries, ExportChoice, Fault};
use super::permits::{Permit, Permits};
use super::tls::Tls;
use super::transport::Transport;
use super::waiting_room::Visit;
use super::wire::{self, MAX_PAYLOAD, MAX_STRING, handshake, info, option, reply};
use crate::event::Event;
use lowtide_core::suggest;
use std::time::Duration;

/// The maximum number of options of a client.
const MOST_OPTIONS: usize = 256;

/// The maximum length of an option's data, in bytes. Longer data is skipped.
const MOST_DATA: usize = 64 << 10;

/// The maximum length of skipped data, in bytes. A client that announces more is dropped.
const MOST_SKIPPED: usize = 1 << 20;

/// The block size that all clients respect without asking.
const COMMON_BLOCK: u32 = 512;

/// Settings of a negotiation.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The use of TLS.
    pub tls: Tls,
    /// Time until the first option; longer than `all_options`, for clients that wait for user input.
    pub first_option: Duration,
    /// Time from the first option to the last reply.
    pub all_options: Duration,
    /// Set to end all negotiations.
    pub stop: Option<Event>,
}

impl Default for Settings {
    /// No TLS; 60 s until the first option, 10 s for all options.
    fn default() -> Settings {
        Settings {
            tls: Tls::Off,
            first_option: Duration::from_secs(60),
            all_options: Duration::from_secs(10),
            stop: None,
        }
    }
}

/// The result of a negotiation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreed {
    /// Index of the export.
    pub export: usize,
    /// Whether replies may be structured.
    pub structured: bool,
    /// Whether the client may request the block status.
    pub base_allocation: bool,
    /// Whether the client knows the block size, and respects it.
    pub block_sizes: bool,
}

/// Negotiates with one client, within the times of `settings`. The first export is the default.
///
/// # Errors
/// [`Ended`] if the client does not begin to use an export.
pub fn negotiate(
    transport: Transport,
    exports: &[Export],
    settings: &Settings,
) -> Result<(Transport, Agreed), Ended> {
    negotiate_at(transport, exports, settings, None)
}

/// [`negotiate`] for a listener. A silent client may be dismissed, and a client needs a permit to begin.
pub(super) fn negotiate_at(
    transport: Transport,
    exports: &[Export],
    settings: &Settings,
    listener: Option<(&Visit, &Permits)>,
) -> Result<(Transport, Agreed), Ended> {
    let (visit, permits) = listener.unzip();
    let conversation = Conversation::new(transport, settings.first_option, settings.stop.as_ref(), visit);
    let (client, agreed) = (Client::default(), State::default());
    let mut negotiation =
        Negotiation { conversation, exports, settings, permits, permit: None, client, agreed };
    let agreed = negotiation.run();
    if agreed.is_err() {
        negotiation.conversation.close();
    }
    let transport = negotiation.conversation.into_transport();
    Ok((transport.with_permit(negotiation.permit), agreed?))
}

/// The flags of the client's greeting.
#[derive(Default)]
struct Client {
    fixed_newstyle: bool,
    no_zeroes: bool,
}

/// The agreements so far. STARTTLS resets them.
#[derive(Default)]
struct State {
    structured: bool,
    /// The export for which `base:allocation` was selected.
    base_allocation: Option<usize>,
    /// The export whose block sizes the client knows.
    block_sizes: Option<usize>,
}

struct Negotiation<'a> {
    conversation: Conversation<'a>,
    exports: &'a [Export],
    settings: &'a Settings,
    permits: Option<&'a Permits>,
    /// The client's permit.
    permit: Option<Permit>,
    client: Client,
    agreed: State,
}

/// The phase after an option.
enum Next {
    Option,
    Transmission(usize),
}

impl Negotiation<'_> {
    fn run(&mut self) -> Result<Agreed, Ended> {
        self.greet()?;
        for number in 0..MOST_OPTIONS {
            let (option, length) = self.header()?;
            if number == 0 {
                self.conversation.set_patience(self.settings.all_options);
            }
            if let Next::Transmission(export) = self.option(option, length)? {
                return Ok(Agreed {
                    export,
                    structured: self.agreed.structured,
                    base_allocation: self.agreed.base_allocation == Some(export),
                    block_sizes: self.agreed.block_sizes == Some(export),
                });
            }
        }
        Err(Ended::Violation(format!("{MOST_OPTIONS} options without the choice of an export")))
    }

    fn greet(&mut self) -> Result<(), Ended> {
        let flags = handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES;
        let mut greeting = Vec::with_capacity(18);
        greeting.extend(wire::MAGIC.to_be_bytes());
        greeting.extend(wire::OPTION_MAGIC.to_be_bytes());
        greeting.extend(flags.to_be_bytes());
        self.conversation.write(&greeting)?;
        let said = u32::from_be_bytes(self.conversation.read()?);
        if said & !u32::from(flags) != 0 {
            return Err(Ended::Violation(format!("its flags are {said:#x}, but only {flags:#x} are known")));
        }
        let has = |flag: u16| said & u32::from(flag) != 0;
        self.client =
            Client { fixed_newstyle: has(handshake::FIXED_NEWSTYLE), no_zeroes: has(handshake::NO_ZEROES) };
        Ok(())
    }

    /// The next option and the length of its data.
    fn header(&mut self) -> Result<(u32, usize), Ended> {
        let magic = u64::from_be_bytes(self.conversation.read()?);
        if magic != wire::OPTION_MAGIC {
            return Err(Ended::Violation(format!("an option begins with {magic:#018x}, not with IHAVEOPT")));
        }
        let option = u32::from_be_bytes(self.conversation.read()?);
        let length = u32::from_be_bytes(self.conversation.read()?) as usize;
        if length > MOST_SKIPPED {
            let what = format!("option {option} announces {length} bytes, more than {MOST_SKIPPED}");
            return Err(Ended::Violation(what));
        }
        if !self.client.fixed_newstyle && option != option::EXPORT_NAME {
            return Err(Ended::Violation(format!(
                "it sent option {option} without the flag for fixed newstyle"
            )));
        }
        Ok((option, length))
    }

    fn option(&mut self, option: u32, length: usize) -> Result<Next, Ended> {
        let tls_first =
            matches!(self.settings.tls, Tls::Required(_)) && !self.conversation.transport().is_tls();
        match option {
            option::EXPORT_NAME if tls_first => Err(Ended::Refused("TLS is required here".to_owned())),
            option::EXPORT_NAME => self.export_name(length),
            option::ABORT => self.abort(length),
            option::STARTTLS => self.start_tls(length),
            _ if tls_first => {
                self.conversation.skip(length)?;
                self.error(option, reply::ERR_TLS_REQD, "TLS is required here: send STARTTLS first")
            }
            option::LIST => self.list(length),
            option::STRUCTURED_REPLY => self.structured_reply(length),
            option::INFO | option::GO => self.info(option, length),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.meta_context(option, length),
            _ => {
                self.conversation.skip(length)?;
                self.error(option, reply::ERR_UNSUP, "this server does not know the option")
            }
        }
    }

    fn export_name(&mut self, length: usize) -> Result<Next, Ended> {
        if length > MAX_STRING {
            return Err(Ended::Violation(format!("it chose an export by a name of {length} bytes")));
        }
        let data = self.conversation.read_all(length)?;
        let name = match options::text(&data) {
            Ok(name) => name,
            Err(Fault::Malformed(what) | Fault::TooBig(what)) => {
                return Err(Ended::Violation(format!("the name of an export: {what}")));
            }
        };
        let number = self.find(name).ok_or_else(|| Ended::Refused(self.unknown(name)))?;
        let export = &self.exports[number];
        if export.minimum_block > COMMON_BLOCK {
            return Err(Ended::Refused(block_size_required(export)));
        }
        self.enter()?;
        let mut answer = Vec::with_capacity(134);
        answer.extend(export.size.to_be_bytes());
        answer.extend(export.flags(self.agreed.structured).to_be_bytes());
        if !self.client.no_zeroes {
            answer.extend([0; 124]);
        }
        self.conversation.write(&answer)?;
        Ok(Next::Transmission(number))
    }

    /// Takes a permit for a client that begins.
    fn enter(&mut self) -> Result<(), Ended> {
        if let Some(permits) = self.permits {
            self.permit = Some(permits.take().ok_or(Ended::Full(permits.most()))?);
        }
        Ok(())
    }

    fn abort(&mut self, length: usize) -> Result<Next, Ended> {
        self.conversation.skip(length)?;
        // The client may leave without waiting for the answer.
        let _ = self.answer(Replies::to(option::ABORT).add(reply::ACK, &[]));
        Err(Ended::Aborted)
    }

    fn list(&mut self, length: usize) -> Result<Next, Ended> {
        if let Some(refused) = self.refuse_data(option::LIST, length)? {
            return Ok(refused);
        }
        let mut replies = Replies::to(option::LIST);
        for export in self.exports {
            let length = string_length(&export.name).to_be_bytes();
            replies =
                replies.add(reply::SERVER, &[&length, export.name.as_bytes(), export.description.as_bytes()]);
        }
        self.answer(replies.add(reply::ACK, &[]))
    }

    fn structured_reply(&mut self, length: usize) -> Result<Next, Ended> {
        if let Some(refused) = self.refuse_data(option::STRUCTURED_REPLY, length)? {
            return Ok(refused);
        }
        self.agreed.structured = true;
        self.answer(Replies::to(option::STRUCTURED_REPLY).add(reply::ACK, &[]))
    }

    fn start_tls(&mut self, length: usize) -> Result<Next, Ended> {
        if let Some(refused) = self.refuse_data(option::STARTTLS, length)? {
            return Ok(refused);
        }
        let Some(config) = self.settings.tls.config() else {
            return self.error(option::STARTTLS, reply::ERR_POLICY, "TLS is off here");
        };
        if self.conversation.transport().is_tls() {
            return self.error(option::STARTTLS, reply::ERR_INVALID, "TLS is already on");
        }
        self.answer(Replies::to(option::STARTTLS).add(reply::ACK, &[]))?;
        self.conversation.start_tls(config)?;
        self.agreed = State::default();
        Ok(Next::Option)
    }

    fn info(&mut self, option: u32, length: usize) -> Result<Next, Ended> {
        let Some(data) = self.data(option, length)? else { return Ok(Next::Option) };
        let choice = match ExportChoice::read(&data) {
            Ok(choice) => choice,
            Err(fault) => return self.fault(option, fault),
        };
        let Some(number) = self.find(choice.name) else {
            return self.error(option, reply::ERR_UNKNOWN, &self.unknown(choice.name));
        };
        let export = &self.exports[number];
        let required = export.minimum_block > COMMON_BLOCK && !choice.wants_block_size;
        let mut replies = Replies::to(option);
        if choice.wants_block_size || required {
            let sizes = [export.minimum_block, export.preferred_block, MAX_PAYLOAD].map(u32::to_be_bytes);
            replies = replies.add_info(info::BLOCK_SIZE, &[sizes.as_flattened()]);
            self.agreed.block_sizes = Some(number);
        }
        if required {
            let text = block_size_required(export);
            return self.answer(replies.add(reply::ERR_BLOCK_SIZE_REQD, &[text.as_bytes()]));
        }
        if option == option::GO
            && let Err(full) = self.enter()
        {
            let replies = Replies::to(option).add(reply::ERR_POLICY, &[full.to_string().as_bytes()]);
            self.answer(replies)?;
            return Err(full);
        }
        if choice.wants_name {
            replies = replies.add_info(info::NAME, &[export.name.as_bytes()]);
        }
        if choice.wants_description {
            replies = replies.add_info(info::DESCRIPTION, &[export.description.as_bytes()]);
        }
        let flags = export.flags(self.agreed.structured);
        replies = replies.add_info(info::EXPORT, &[&export.size.to_be_bytes(), &flags.to_be_bytes()]);
        self.answer(replies.add(reply::ACK, &[]))?;
        Ok(if option == option::GO { Next::Transmission(number) } else { Next::Option })
    }

    fn meta_context(&mut self, option: u32, length: usize) -> Result<Next, Ended> {
        let set = option == option::SET_META_CONTEXT;
        if set {
            // The old selection is dropped even if this option fails.
            self.agreed.base_allocation = None;
        }
        let Some(data) = self.data(option, length)? else { return Ok(Next::Option) };
        if !self.agreed.structured {
            let text = "metadata contexts need structured replies: ask for those first";
            return self.error(option, reply::ERR_INVALID, text);
        }
        let asked = match ContextQueries::read(&data) {
            Ok(asked) => asked,
            Err(fault) => return self.fault(option, fault),
        };
        let Some(export) = self.find(asked.export) else {
            return self.error(option, reply::ERR_UNKNOWN, &self.unknown(asked.export));
        };
        let found =
            if set { meta_context::selects(&asked.queries) } else { meta_context::lists(&asked.queries) };
        let mut replies = Replies::to(option);
        if found {
            let id = if set { wire::BASE_ALLOCATION_ID } else { 0 };
            replies =
                replies.add(reply::META_CONTEXT, &[&id.to_be_bytes(), wire::BASE_ALLOCATION.as_bytes()]);
        }
        if found && set {
            self.agreed.base_allocation = Some(export);
        }
        self.answer(replies.add(reply::ACK, &[]))
    }

    /// Reads the data of an option. Data that is too long gets an error reply and returns `None`.
    fn data(&mut self, option: u32, length: usize) -> Result<Option<Vec<u8>>, Ended> {
        if length <= MOST_DATA {
            return self.conversation.read_all(length).map(Some);
        }
        self.conversation.skip(length)?;
        self.error(option, reply::ERR_TOO_BIG, "the option has more than 64 KiB of data")?;
        Ok(None)
    }

    /// Refuses data of an option that takes none.
    fn refuse_data(&mut self, option: u32, length: usize) -> Result<Option<Next>, Ended> {
        if length == 0 {
            return Ok(None);
        }
        self.conversation.skip(length)?;
        self.error(option, reply::ERR_INVALID, "the option takes no data").map(Some)
    }

    fn fault(&mut self, option: u32, fault: Fault) -> Result<Next, Ended> {
        match fault {
            Fault::Malformed(what) => self.error(option, reply::ERR_INVALID, what),
            Fault::TooBig(what) => self.error(option, reply::ERR_TOO_BIG, what),
        }
    }

    fn error(&mut self, option: u32, kind: u32, text: &str) -> Result<Next, Ended> {
        self.answer(Replies::to(option).add(kind, &[text.as_bytes()]))
    }

    fn answer(&mut self, replies: Replies) -> Result<Next, Ended> {
        self.conversation.write(&replies.bytes)?;
        Ok(Next::Option)
    }

    /// The index of an export; the empty name means the first one.
    fn find(&self, name: &str) -> Option<usize> {
        let named = self.exports.iter().position(|export| export.name == name);
        named.or((name.is_empty() && !self.exports.is_empty()).then_some(0))
    }

    fn unknown(&self, name: &str) -> String {
        // Limited so that the text fits a string of the protocol.
        let shown: String = name.chars().take(256).collect();
        let names = self.exports.iter().map(|export| export.name.as_str());
        let offer = match suggest::nearest(&shown, names) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => "LIST returns all names".to_owned(),
        };
        format!("there is no export \"{shown}\": {offer}")
    }
}

fn block_size_required(export: &Export) -> String {
    let minimum = export.minimum_block;
    format!("\"{}\" has blocks of {minimum} bytes, and the client did not ask for block sizes", export.name)
}

fn string_length(text: &str) -> u32 {
    u32::try_from(text.len()).expect("names of exports are short strings")
}

/// The replies to one option, sent together.
struct Replies {
    option: u32,
    bytes: Vec<u8>,
}

impl Replies {
    fn to(option: u32) -> Replies {
        Replies { option, bytes: Vec::new() }
    }

    fn add(mut self, kind: u32, data: &[&[u8]]) -> Replies {
        let length: usize = data.iter().map(|part| part.len()).sum();
        self.bytes.extend(wire::OPTION_REPLY_MAGIC.to_be_bytes());
        self.bytes.extend(self.option.to_be_bytes());
        self.bytes.extend(kind.to_be_bytes());
        self.bytes.extend(u32::try_from(length).expect("replies are short").to_be_bytes());
        data.iter().for_each(|part| self.bytes.extend(*part));
        self
    }

    fn add_info(self, kind: u16, data: &[&[u8]]) -> Replies {
        let kind = kind.to_be_bytes();
        let parts: Vec<&[u8]> = std::iter::once(&kind[..]).chain(data.iter().copied()).collect();
        self.add(reply::INFO, &parts)
    }
}
