/**
 * The identity of this package's browser extension. The key in the manifest gives the extension the same id, and so the same origin, on every
 * machine.
 */

/** The public key for the field `key` of the manifest. No private key exists, because the extension is not signed. */
export const EXTENSION_KEY =
  'MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA4r70C1FonFyLpyEmXXrHOttAg8r259m7IoaL2JtOkyqOgVryCEtkobSYOUSpAJtzUPbbYskuiPD6UEV+QOZBpf4FqXvc9L8V9tN+Y7TrQ/SCA2hSO0NeLl9nZTuqA836UpdwX4tVlHBh3i6PU/iuzl/ecn40uzNWx2rg63rCQnr7ckwro1nqO7oTg8T0c5le1Qrk5D+fJmHYeG+YQteUlWFnV7tXHebJE6Ff3gIHUQs0Q4mXe9NWtAhpgmlV2gYJOS0UVlQugUSVGpViBBcavsUg8LjcWKV6OVIrskPxbtzy5M21iGxYKEQPs8mMTjKrFOL12cWFn31ebLDS+EntHQIDAQAB'

/** The id that Chrome derives from the key: the first 128 bits of the key's SHA-256, in hexadecimal with the letters a to p as digits. */
const EXTENSION_ID = 'ghlmojgiagjhiejammfoiaanpnleefod'

/** The `Origin` of the extension's requests. */
export const EXTENSION_ORIGIN = `chrome-extension://${EXTENSION_ID}`
