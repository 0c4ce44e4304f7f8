//! TLS: discarded state, options that need TLS, client verification, and invalid certificates.
//!
//! The client uses rustls, like the server. Other TLS implementations are tested in `crates/cli/tests/nbd`.

use crate::client::*;
use lowtide_host::HostError;
use lowtide_host::nbd::tls::read_certificates;
use lowtide_host::nbd::wire::{option, reply};
use lowtide_host::nbd::{Agreed, Ended, Settings, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertificateRevocationListParams, IsCa, Issuer, KeyPair};
use rcgen::{KeyIdMethod, KeyUsagePurpose, RevokedCertParams, SerialNumber, date_time_ymd};
use rustix::event::{PollFd, PollFlags, poll};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{ErrorKind, IoSlice, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The serial number of the client certificate that can be revoked.
const REVOKED: u64 = 77;

/// A folder with the certificates of a server and of two clients.
pub struct Authority {
    folder: tempfile::TempDir,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new() -> Authority {
        let folder = tempfile::tempdir().expect("a folder");
        let mut params = CertificateParams::new([]).expect("names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a certificate");
        std::fs::write(folder.path().join("ca-cert.pem"), certificate.pem()).expect("written");
        let authority = Authority { folder, issuer: Issuer::new(params, key) };
        authority.issue("server", 1);
        authority.issue("client", REVOKED);
        authority
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    fn issue(&self, name: &str, number: u64) {
        let mut params = CertificateParams::new(["localhost".to_owned()]).expect("names");
        params.serial_number = Some(SerialNumber::from(number));
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        std::fs::write(self.path().join(format!("{name}-cert.pem")), certificate.pem()).expect("written");
        std::fs::write(self.path().join(format!("{name}-key.pem")), key.serialize_pem()).expect("written");
    }

    fn revoke(&self, number: u64) {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2026, 1, 1),
            next_update: date_time_ymd(2126, 1, 1),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(number),
                revocation_time: date_time_ymd(2026, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        let pem = list.signed_by(&self.issuer).expect("a list").pem().expect("as PEM");
        std::fs::write(self.path().join("ca-crl.pem"), pem).expect("written");
    }

    /// A client that trusts this authority, with the client certificate in `own` if given.
    pub fn client(
        &self,
        stream: UnixStream,
        own: Option<&Path>,
    ) -> StreamOwned<ClientConnection, UnixStream> {
        let mut roots = RootCertStore::empty();
        let authority =
            CertificateDer::from_pem_file(self.path().join("ca-cert.pem")).expect("a certificate");
        roots.add(authority).expect("a certificate");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match own {
            None => builder.with_no_client_auth(),
            Some(folder) => {
                let certificate = CertificateDer::from_pem_file(folder.join("client-cert.pem"));
                let key = PrivateKeyDer::from_pem_file(folder.join("client-key.pem")).expect("a key");
                builder.with_client_auth_cert(vec![certificate.expect("a certificate")], key).expect("a pair")
            }
        };
        let name = "localhost".try_into().expect("a name");
        StreamOwned::new(ClientConnection::new(Arc::new(config), name).expect("a connection"), stream)
    }
}

pub fn settings(tls: Tls) -> Settings {
    Settings { tls, ..Settings::default() }
}

/// Starts a session and switches to TLS.
fn secured(authority: &Authority, tls: Tls) -> (Client<StreamOwned<ClientConnection, UnixStream>>, Server) {
    let (mut client, server) = session(settings(tls));
    assert_eq!(client.ask(option::STARTTLS, &[]), [(reply::ACK, vec![])]);
    (Client { stream: authority.client(client.stream, None) }, server)
}

#[test]
fn tls_that_is_offered_may_be_used_and_forgets_what_was_said_before() {
    let authority = Authority::new();
    let config = read_certificates(authority.path(), false).expect("certificates");
    // Without TLS.
    let (mut client, server) = session(settings(Tls::Offered(Arc::clone(&config))));
    assert_eq!(client.kinds(option::GO, &choice("first", &[])), [reply::INFO, reply::ACK]);
    assert!(!server.outcome().expect("agreed").0.is_tls());
    // With TLS.
    let (mut client, server) = session(settings(Tls::Offered(config)));
    structured(&mut client);
    assert_eq!(client.kinds(option::SET_META_CONTEXT, &queries("", &["base:allocation"])).len(), 2);
    assert_eq!(client.kinds(option::STARTTLS, &[0]), [reply::ERR_INVALID]);
    assert_eq!(client.kinds(option::STARTTLS, &[]), [reply::ACK]);
    let mut client = Client { stream: authority.client(client.stream, None) };
    assert_eq!(client.kinds(option::STARTTLS, &[]), [reply::ERR_INVALID]);
    assert_eq!(client.kinds(option::LIST, &[]).len(), 4);
    assert_eq!(client.kinds(option::GO, &choice("first", &[])), [reply::INFO, reply::ACK]);
    let (transport, agreed) = server.outcome().expect("agreed");
    assert!(transport.is_tls());
    assert_eq!(agreed, Agreed { export: 0, structured: false, base_allocation: false, block_sizes: false });
}

#[test]
fn tls_that_is_required_comes_before_everything_else() {
    let authority = Authority::new();
    let tls = Tls::Required(read_certificates(authority.path(), false).expect("certificates"));
    let (mut client, server) = session(settings(tls.clone()));
    let rows: [(u32, Vec<u8>); 8] = [
        (option::LIST, vec![]),
        (option::STRUCTURED_REPLY, vec![]),
        (option::INFO, choice("none", &[])),
        (option::GO, choice("first", &[])),
        (option::LIST_META_CONTEXT, queries("", &[])),
        (option::SET_META_CONTEXT, vec![0; 100_000]),
        (option::EXTENDED_HEADERS, vec![]),
        (99, vec![1, 2, 3]),
    ];
    for (option, data) in &rows {
        assert_eq!(client.kinds(*option, data), [reply::ERR_TLS_REQD], "option {option}");
    }
    assert_eq!(client.kinds(option::STARTTLS, &[]), [reply::ACK]);
    let mut client = Client { stream: authority.client(client.stream, None) };
    for (option, data) in &rows {
        assert!(!client.kinds(*option, data).contains(&reply::ERR_TLS_REQD), "option {option}");
        if *option == option::GO {
            break;
        }
    }
    assert!(server.outcome().expect("agreed").0.is_tls());

    let (mut client, server) = session(settings(tls.clone()));
    assert_eq!(client.kinds(option::ABORT, &[]), [reply::ACK]);
    assert!(matches!(server.ended(), Ended::Aborted));

    let (mut client, server) = session(settings(tls));
    client.send(option::EXPORT_NAME, b"first");
    assert!(matches!(server.ended(), Ended::Refused(_)));
    assert!(client.rest().is_empty());
}

#[test]
fn an_abort_and_an_export_by_name_go_through_tls() {
    let authority = Authority::new();
    let tls = Tls::Required(read_certificates(authority.path(), false).expect("certificates"));
    let (mut client, server) = secured(&authority, tls.clone());
    assert_eq!(client.kinds(option::ABORT, &[]), [reply::ACK]);
    // The session ends with a TLS close, not with a cut connection.
    let mut rest = Vec::new();
    assert_eq!(client.stream.read_to_end(&mut rest).expect("a clean end"), 0);
    assert!(matches!(server.ended(), Ended::Aborted));

    let (mut client, server) = secured(&authority, tls);
    client.send(option::EXPORT_NAME, b"second");
    assert_eq!(client.bytes(10)[..8], (1_u64 << 30).to_be_bytes());
    assert_eq!(server.agreed().export, 1);
}

#[test]
fn a_goodbye_that_came_with_the_last_bytes_is_seen() {
    let authority = Authority::new();
    let tls = Tls::Offered(read_certificates(authority.path(), false).expect("certificates"));
    let (mut client, server) = secured(&authority, tls);
    assert_eq!(client.kinds(option::GO, &choice("first", &[])), [reply::INFO, reply::ACK]);
    let (mut transport, _) = server.outcome().expect("agreed");
    assert!(!transport.has_buffered());
    // Data and close in one write, while the socket stays open.
    client.stream.conn.writer().write_all(b"last").expect("buffered");
    client.stream.conn.send_close_notify();
    while client.stream.conn.wants_write() {
        client.stream.conn.write_tls(&mut client.stream.sock).expect("sent");
    }
    let mut buffer = [0; 16];
    assert_eq!(transport.read(&mut buffer).expect("bytes"), 4);
    // The descriptor does not signal the end.
    assert!(transport.has_buffered());
    assert_eq!(transport.read(&mut buffer).expect("the end"), 0);
}

#[test]
fn data_goes_both_ways_through_tls_and_nothing_early_is_lost() {
    const BYTES: usize = 3 << 20;
    let authority = Authority::new();
    let tls = Tls::Offered(read_certificates(authority.path(), false).expect("certificates"));
    let (mut client, server) = secured(&authority, tls);
    // The choice of the export and the next data are in one write, and so in one TLS record.
    let data: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let early = [message(option::GO, &choice("first", &[])), data[..1000].to_vec()].concat();
    client.stream.write_all(&early).expect("sent");
    assert_eq!((client.reply().1, client.reply().1), (reply::INFO, reply::ACK));
    let (mut transport, _) = server.outcome().expect("agreed");
    // The descriptor does not signal the data.
    assert!(transport.has_buffered());
    let echo = std::thread::spawn(move || {
        let (mut back, mut buffer) = (Vec::new(), vec![0; 100_000]);
        let (mut sent, mut ended) = (0, false);
        while !ended || sent < back.len() || transport.wants_write() {
            let mut idle = true;
            match transport.read(&mut buffer) {
                Ok(0) => ended = true,
                Ok(read) => {
                    back.extend(&buffer[..read]);
                    idle = false;
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            let (half, rest) = back[sent..].split_at((back.len() - sent) / 2);
            if sent < back.len() {
                match transport.write_vectored(&[IoSlice::new(half), IoSlice::new(rest)]) {
                    Ok(written) => {
                        assert!(written > 0);
                        sent += written;
                        idle = false;
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
                }
            }
            transport.flush_tls().expect("sent");
            if idle {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        // Waits for room in the socket, so that the TLS close can be sent.
        poll(&mut [PollFd::from_borrowed_fd(transport.write_fd(), PollFlags::OUT)], None).expect("room");
        transport.close();
    });
    // The client writes everything before it reads, so the server's data has to wait.
    client.stream.write_all(&data[1000..]).expect("sent");
    client.stream.conn.send_close_notify();
    client.stream.flush().expect("sent");
    let mut back = Vec::new();
    client.stream.read_to_end(&mut back).expect("a clean end");
    assert!(back == data, "{} bytes came back, and not the same", back.len());
    echo.join().expect("no panic");
}

#[test]
fn clients_are_verified() {
    let (authority, other) = (Authority::new(), Authority::new());
    let attempt = |own: Option<&Path>| {
        let tls = Tls::Required(read_certificates(authority.path(), true).expect("certificates"));
        let (mut client, server) = session(settings(tls));
        assert_eq!(client.kinds(option::STARTTLS, &[]), [reply::ACK]);
        let mut stream = authority.client(client.stream, own);
        // A refused client gets the error from this write or from the next read.
        let _ = stream.write_all(&message(option::GO, &choice("first", &[])));
        let outcome = server.outcome().map(|_| ());
        (outcome, stream)
    };
    attempt(Some(authority.path())).0.expect("its certificate is signed");
    for (what, own) in [("none", None), ("of another authority", Some(other.path()))] {
        let (outcome, mut stream) = attempt(own);
        let ended = outcome.expect_err(what);
        assert!(matches!(&ended, Ended::Tls(_)), "{what}: {ended}");
        // The client can still read the alert after a failed write.
        let told = loop {
            stream.conn.read_tls(&mut stream.sock).expect("an alert comes before the end");
            if let Err(told) = stream.conn.process_new_packets() {
                break told;
            }
        };
        assert!(matches!(&told, rustls::Error::AlertReceived(_)), "{what}: {told}");
    }
    authority.revoke(REVOKED);
    let ended = attempt(Some(authority.path())).0.expect_err("revoked");
    assert!(ended.to_string().contains("Revoked"), "{ended}");
}

#[test]
fn a_client_that_speaks_no_tls_after_starttls_is_dropped() {
    let authority = Authority::new();
    let tls = Tls::Offered(read_certificates(authority.path(), false).expect("certificates"));
    let (mut client, server) = session(settings(tls.clone()));
    // The plain-text option after STARTTLS must not be read as if it came over TLS.
    let both = [message(option::STARTTLS, &[]), message(option::GO, &choice("first", &[]))].concat();
    client.stream.write_all(&both).expect("sent");
    let ended = server.ended();
    assert!(matches!(&ended, Ended::Tls(_)), "{ended}");

    let patience = Duration::from_millis(200);
    let (mut silent, server) = session(Settings { all_options: patience, ..settings(tls.clone()) });
    assert_eq!(silent.kinds(option::STARTTLS, &[]), [reply::ACK]);
    assert!(matches!(server.ended(), Ended::TimedOut(_)));

    let (mut gone, server) = session(settings(tls));
    assert_eq!(gone.kinds(option::STARTTLS, &[]), [reply::ACK]);
    drop(gone);
    assert!(matches!(server.ended(), Ended::Left));
}

/// A row: the file at fault, the expected error, the damage to the files, and whether clients are verified.
type Spoilt = (&'static str, &'static str, Box<dyn Fn(&Path)>, bool);

#[test]
fn what_is_wrong_with_certificates_is_told_with_the_file() {
    let told = |spoil: &dyn Fn(&Path), verify: bool| {
        let authority = Authority::new();
        spoil(authority.path());
        let error = read_certificates(authority.path(), verify).expect_err("spoiled");
        let HostError::Certificates { path, .. } = &error else { panic!("{error}") };
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        (name, error.to_string())
    };
    let remove =
        |name: &'static str| move |folder: &Path| std::fs::remove_file(folder.join(name)).expect("removed");
    let write = |name: &'static str, text: &'static str| {
        move |folder: &Path| std::fs::write(folder.join(name), text).expect("written")
    };
    let copy = |from: &'static str, to: &'static str| {
        move |folder: &Path| {
            std::fs::copy(folder.join(from), folder.join(to)).expect("copied");
        }
    };
    let bad = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cut = "-----BEGIN CERTIFICATE-----\nAAAA\n";
    let rows: Vec<Spoilt> = vec![
        ("server-cert.pem", "does not exist", Box::new(remove("server-cert.pem")), false),
        ("server-key.pem", "does not exist", Box::new(remove("server-key.pem")), false),
        ("ca-cert.pem", "does not exist", Box::new(remove("ca-cert.pem")), true),
        ("server-cert.pem", "has no certificate in it", Box::new(write("server-cert.pem", "")), false),
        ("server-key.pem", "has no private key in it", Box::new(write("server-key.pem", "x")), false),
        ("server-cert.pem", "cannot be used", Box::new(write("server-cert.pem", bad)), false),
        ("server-cert.pem", "is not a PEM file", Box::new(write("server-cert.pem", cut)), false),
        ("ca-cert.pem", "cannot be used", Box::new(write("ca-cert.pem", bad)), true),
        ("ca-crl.pem", "has no revocation list in it", Box::new(write("ca-crl.pem", "")), true),
        ("server-key.pem", "is not the key of", Box::new(copy("client-key.pem", "server-key.pem")), false),
        ("server-key.pem", "has no private key", Box::new(copy("server-cert.pem", "server-key.pem")), false),
    ];
    for (file, what, spoil, verify) in rows {
        let (name, text) = told(&spoil, verify);
        assert!(name == file && text.contains(what), "{file} {what}: {text}");
    }
    // The certificate authority of clients is not needed if clients are not verified.
    let authority = Authority::new();
    remove("ca-cert.pem")(authority.path());
    read_certificates(authority.path(), false).expect("a server's certificate is enough");
}

/// Symptom: the server reported that a valid key could not be parsed. Cause: the library signs only with keys of
/// certain lengths, and its error does not mention that. Fix: the length is checked first, and the error gives it.
#[test]
fn a_key_of_a_length_that_cannot_sign_is_refused_with_its_length() {
    let authority = Authority::new();
    let with = |key: &str| {
        std::fs::write(authority.path().join("server-key.pem"), key).expect("written");
        read_certificates(authority.path(), false).expect_err("refused").to_string()
    };
    let refused = with(include_str!("rsa-2432.pem"));
    assert!(refused.contains("server-key.pem has an RSA key of 2432 bits"), "{refused}");
    assert!(refused.contains("2048, 3072, 4096 bits are accepted"), "{refused}");
    // A key of a supported length is read, but does not belong to the certificate.
    let refused = with(include_str!("rsa-3072.pem"));
    assert!(refused.contains("is not the key of the certificate"), "{refused}");
}
