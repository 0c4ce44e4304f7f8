//! The length of an RSA key ([`bits`]), for error messages.
//!
//! Sources: RFC 8017 A.1.2 (RSAPrivateKey), RFC 5208 (PrivateKeyInfo). The TLS library validates the key.

use rustls::pki_types::PrivateKeyDer;

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// 1.2.840.113549.1.1.1, rsaEncryption.
const RSA: [u8; 9] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// The length of the modulus in bits; `None` for another kind of key.
pub(super) fn bits(key: &PrivateKeyDer<'_>) -> Option<usize> {
    match key {
        PrivateKeyDer::Pkcs1(key) => modulus(key.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(key) => {
            let (info, _) = element(key.secret_pkcs8_der(), SEQUENCE)?;
            let (_version, rest) = element(info, INTEGER)?;
            let (algorithm, rest) = element(rest, SEQUENCE)?;
            let (kind, _) = element(algorithm, OBJECT)?;
            let (key, _) = element(rest, OCTET_STRING)?;
            (kind == RSA).then(|| modulus(key)).flatten()
        }
        _ => None,
    }
}

fn modulus(key: &[u8]) -> Option<usize> {
    let (key, _) = element(key, SEQUENCE)?;
    let (_version, rest) = element(key, INTEGER)?;
    let (modulus, _) = element(rest, INTEGER)?;
    let first = modulus.iter().position(|byte| *byte != 0)?;
    Some((modulus.len() - first) * 8 - modulus[first].leading_zeros() as usize)
}

/// The contents of the element at the start of `bytes`, if it has this tag, and the bytes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&found, rest) = bytes.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = if first < 0x80 {
        (usize::from(first), rest)
    } else {
        let (length, rest) =
            rest.split_at_checked(usize::from(first & 0x7f)).filter(|(it, _)| it.len() <= 4)?;
        (length.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
    };
    (found == tag).then(|| rest.split_at_checked(length)).flatten()
}
