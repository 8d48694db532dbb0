/** The program that a client half starts as its partner: as a thread or as a child process. */
export const PARTNER = new URL('../programs/partner.js', import.meta.url)
