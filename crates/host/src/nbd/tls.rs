//! TLS for clients ([`Tls`]), and its certificates.
//!
//! A directory holds the files that nbdkit and qemu expect: `server-cert.pem` (the server's certificate chain),
//! `server-key.pem` (its key), and, to verify clients, `ca-cert.pem` (the authority of their certificates) and
//! optionally `ca-crl.pem` (revoked certificates). TLS 1.2 and 1.3 are supported, by rustls with ring, which accepts
//! only some lengths of RSA keys ([`RSA_BITS`]).
//!
//! # Not supported
//! Pre-shared keys, because rustls does not support them.

use super::rsa;
use crate::error::HostError;
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The lengths of RSA keys that ring supports: two primes of a multiple of 512 bits each.
const RSA_BITS: [usize; 3] = [2048, 3072, 4096];

const CERTIFICATE: &str = "certificate";

/// The use of TLS by clients.
#[derive(Debug, Clone, Default)]
pub enum Tls {
    /// No TLS.
    #[default]
    Off,
    /// Clients may use TLS.
    Offered(Arc<ServerConfig>),
    /// Clients must use TLS, even to list exports.
    Required(Arc<ServerConfig>),
}

impl Tls {
    pub(super) fn config(&self) -> Option<Arc<ServerConfig>> {
        match self {
            Tls::Off => None,
            Tls::Offered(config) | Tls::Required(config) => Some(Arc::clone(config)),
        }
    }
}

/// Reads the certificates of a server from `folder`. With `verify_peer`, clients also need a certificate, signed by
/// `ca-cert.pem`.
///
/// # Errors
/// [`HostError::Certificates`] with the file and the fault.
pub fn read_certificates(folder: &Path, verify_peer: bool) -> Result<Arc<ServerConfig>, HostError> {
    let certificate = folder.join("server-cert.pem");
    let key = folder.join("server-key.pem");
    let chain = items(&certificate, CERTIFICATE)?;
    let secret = PrivateKeyDer::from_pem_file(&key).map_err(|error| fault(&key, "private key", error))?;
    if let Some(bits) = rsa::bits(&secret)
        && !RSA_BITS.contains(&bits)
    {
        let accepted = RSA_BITS.map(|bits| bits.to_string()).join(", ");
        return Err(refused(
            &key,
            format!(
                "has an RSA key of {bits} bits: RSA keys of {accepted} bits are accepted, and keys of P-256, P-384 and \
                 Ed25519"
            ),
        ));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .expect("ring has algorithms for TLS 1.2 and 1.3");
    let builder = if verify_peer {
        builder.with_client_cert_verifier(verifier(folder, provider)?)
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_single_cert(chain, secret).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            refused(&key, format!("is not the key of the certificate in {}", certificate.display()))
        }
        rustls::Error::InvalidCertificate(error) => {
            refused(&certificate, format!("has a certificate that cannot be used: {error:?}"))
        }
        error => refused(
            &key,
            format!(
                "has a key that cannot be used ({error}): keys of RSA, P-256, P-384 and Ed25519 are accepted"
            ),
        ),
    })?;
    // NBD clients stay connected, so session tickets are useless.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn verifier(
    folder: &Path,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, HostError> {
    let authority = folder.join("ca-cert.pem");
    let mut roots = rustls::RootCertStore::empty();
    for certificate in items(&authority, CERTIFICATE)? {
        roots.add(certificate).map_err(|error| {
            refused(&authority, format!("has a certificate that cannot be used: {error}"))
        })?;
    }
    let revoked = folder.join("ca-crl.pem");
    let lists = if revoked.exists() { items(&revoked, "revocation list")? } else { Vec::new() };
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .with_crls(lists)
        .build()
        .map_err(|error| refused(&revoked, format!("cannot be used: {error}")))
}

/// The items of a PEM file, at least one.
fn items<T: PemObject>(path: &Path, kind: &'static str) -> Result<Vec<T>, HostError> {
    let found = T::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    found
        .and_then(|found| if found.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(found) })
        .map_err(|error| fault(path, kind, error))
}

/// Describes the fault of a file that should hold a `wanted`.
fn fault(path: &Path, wanted: &'static str, error: pem::Error) -> HostError {
    let what = match error {
        pem::Error::Io(error) if error.kind() == io::ErrorKind::NotFound => "does not exist".to_owned(),
        pem::Error::Io(error) => format!("cannot be read: {error}"),
        pem::Error::NoItemsFound => format!("has no {wanted} in it"),
        error => format!("is not a PEM file: {error}"),
    };
    refused(path, what)
}

fn refused(path: &Path, what: String) -> HostError {
    HostError::Certificates { path: PathBuf::from(path), what }
}
