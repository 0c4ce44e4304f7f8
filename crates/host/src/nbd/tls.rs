//! Whether clients may or must use TLS ([`Tls`]), and the certificates for it.
//!
//! A folder holds what nbdkit and qemu expect there: `server-cert.pem` (the server's certificate, and those between it
//! and the authority), `server-key.pem` (its key), and, to verify clients, `ca-cert.pem` (who signs their certificates)
//! and perhaps `ca-crl.pem` (which of them are revoked). TLS 1.2 and 1.3, by rustls with the algorithms of ring, which
//! sign with RSA keys of some lengths only ([`RSA_BITS`]).
//!
//! Not here: shared keys instead of certificates, which rustls does not have, and making certificates.

use super::rsa;
use crate::error::HostError;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// RSA keys that ring signs with: of two primes of a multiple of 512 bits each.
const RSA_BITS: [usize; 3] = [2048, 3072, 4096];

/// Whether clients may or must use TLS.
#[derive(Debug, Clone, Default)]
pub enum Tls {
    /// They cannot.
    #[default]
    Off,
    /// They may.
    Offered(Arc<ServerConfig>),
    /// They must: nothing is told without it, and no drive is served.
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

/// Reads the certificates of a server from `folder`. With `verify_peer`, clients must have a certificate too, signed by
/// `ca-cert.pem`.
///
/// # Errors
///
/// [`HostError::Certificates`] says which file, and what is wrong with it.
pub fn read_certificates(folder: &Path, verify_peer: bool) -> Result<Arc<ServerConfig>, HostError> {
    let certificate = folder.join("server-cert.pem");
    let key = folder.join("server-key.pem");
    let chain = certificates(&certificate)?;
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
    // Clients of a drive stay; none comes back for a shorter handshake.
    config.send_tls13_tickets = 0;
    Ok(Arc::new(config))
}

fn verifier(
    folder: &Path,
    provider: Arc<rustls::crypto::CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, HostError> {
    let authority = folder.join("ca-cert.pem");
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates(&authority)? {
        roots.add(certificate).map_err(|error| {
            refused(&authority, format!("has a certificate that cannot be used: {error}"))
        })?;
    }
    let revoked = folder.join("ca-crl.pem");
    let lists = if revoked.exists() { revocations(&revoked)? } else { Vec::new() };
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .with_crls(lists)
        .build()
        .map_err(|error| refused(&revoked, format!("cannot be used: {error}")))
}

/// The certificates in a file, at least one.
fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, HostError> {
    let found = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    found
        .and_then(|found| if found.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(found) })
        .map_err(|error| fault(path, "certificate", error))
}

/// The revocation lists in a file, at least one.
fn revocations(path: &Path) -> Result<Vec<CertificateRevocationListDer<'static>>, HostError> {
    let found =
        CertificateRevocationListDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    found
        .and_then(|found| if found.is_empty() { Err(pem::Error::NoItemsFound) } else { Ok(found) })
        .map_err(|error| fault(path, "revocation list", error))
}

/// What is wrong with a file that should hold a `wanted`.
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
