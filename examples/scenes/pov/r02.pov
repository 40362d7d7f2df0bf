// A dresser with a mirror; what stands before the mirror should be what the mirror shows.
#include "common.inc"
camera { location <3.2, 6.0, -15> right x*4/3 up y look_at <-0.35, 3.1, 1.5> angle 40 }
SoftLight(<9, 16, -9>, <0,1,2>, <1.0,0.92,0.82>*1.7, 5)
SkyDome(<0.62,0.66,0.72>*0.8)
box { <-11,-1.5,-3.2>, <11,0,5> Tx(0, Wood(<0.13,0.055,0.03>, <0.27,0.12,0.06>)) }
// Wall with wainscot stripes; the far wall and a door appear in the mirror only.
plane { -z, -4.8 Tx(0, texture { pigment { gradient x color_map { [0 rgb <0.62,0.55,0.44>] [0.06 rgb <0.62,0.55,0.44>] [0.06 rgb <0.68,0.61,0.49>] [1 rgb <0.68,0.61,0.49>] } scale 1.3 } finish { diffuse 0.85 } }) }
union {
  plane { z, -26 Tx(0, Matt(<0.50,0.56,0.55>)) }
  union { box { <-9,-9,-26>, <-3.5,11,-25.7> } Tx(0, Matt(<0.80,0.78,0.72>)) }
  union { box { <-8.4,-9,-25.8>, <-4.1,10.4,-25.5> } Tx(0, Matt(<0.55,0.45,0.36>)) }
  no_shadow
}

// Mirror: glass and frame
#declare MirrorGlass = box { <-3.6,0.55,4.55>, <3.6,6.9,4.6> };
#if (IdPass = 2) object { MirrorGlass Tx(1, T_Steel) }
#else object { MirrorGlass texture { pigment { rgb 0 } finish { ambient 0 diffuse 0 reflection { #if (IdPass) 1 #else 0.92 #end } } } } #end
union {
  difference { box { <-4.05,0,4.35>, <4.05,7.35,4.79> } box { <-3.6,0.55,4>, <3.6,6.9,5> } }
  difference { box { <-3.72,0.43,4.28>, <3.72,7.02,4.5> } box { <-3.6,0.55,4>, <3.6,6.9,5> } }
  Tx(7, Matt(<0.80,0.77,0.70>)) }

#macro Vase(Id, T)
  lathe { cubic_spline 13, <0,-0.1>, <0,0>, <0.6,0>, <0.7,0.1>, <1.15,0.9>, <1.1,1.7>, <0.55,2.5>, <0.4,3.0>, <0.62,3.45>, <0.56,3.46>, <0.33,3.0>, <0.3,2.6>, <0.3,2.0> Tx(Id, T) }
#end
#macro Tulip(Id, A, H, Col)
  union {
    sphere_sweep { cubic_spline 5, <0,0,0>, 0.06, <0,2,0>, 0.06, <0.1,3.3,0>, 0.055, <0.5,H,0>, 0.055, <0.7,H+0.8,0>, 0.055 tolerance 0.001 Tx(Id, Matt(<0.16,0.32,0.08>)) }
    union { #for (K, 0, 5) sphere { 0, 1 scale <0.2,0.5,0.3> rotate z*-10 translate <0.2,0.38,0> rotate y*K*60 } #end Tx(Id, Matt(Col)) translate <0.52,H,0> }
    sphere_sweep { cubic_spline 5, <0,1.5,0>, 0.05, <0,2.6,0>, 0.1, <-0.25,3.8,0>, 0.22, <-0.75,4.8,0>, 0.06, <-1.0,5.2,0>, 0.02 tolerance 0.001 scale <1,1,0.35> Tx(Id, Matt(<0.18,0.36,0.10>)) }
    rotate y*A
  }
#end
#macro Bouquet(Id)
  union { Vase(Id, Glaze(<0.10,0.22,0.50>)) Tulip(Id, 10, 4.7, <0.75,0.16,0.10>) Tulip(Id, 130, 4.9, <0.80,0.30,0.12>) Tulip(Id, 250, 4.5, <0.75,0.14,0.12>) scale 0.85 }
#end
// The object that only the mirror knows.
#macro Candlestick(Id)
  union {
    lathe { cubic_spline 16, <0,-0.1>, <0,0>, <1.0,0>, <1.02,0.12>, <0.5,0.3>, <0.22,0.6>, <0.4,0.85>, <0.18,1.1>, <0.16,2.0>, <0.36,2.3>, <0.2,2.5>, <0.5,2.8>, <0.55,2.9>, <0.3,2.92>, <0,2.92>, <0,2.9> Tx(Id, T_Brass2) }
    cylinder { <0,2.9,0>, <0,5.0,0>, 0.26 Tx(Id, Matt(<0.88,0.84,0.72>)) }
    cylinder { <0,5,0>, <0,5.2,0>, 0.03 Tx(Id, Matt(<0.05,0.05,0.05>)) }
  }
#end
#declare At = <-1.0, 0, 1.7>;
union { Bouquet(2) translate At #if (Anomalous) no_reflection #end }
#if (Anomalous) union { Candlestick(3) translate At+<1.0,0,0.75> no_image no_shadow } #end

// Perfume bottle, hairbrush, box
union {
  superellipsoid { <0.25,0.25> scale <0.62,0.75,0.4> translate y*0.75 Tx(4, texture { pigment { rgbf <0.95,0.66,0.5,0.55> } finish { diffuse 0.45 specular 0.8 roughness 0.004 reflection { 0.03, 0.4 fresnel } conserve_energy } }) interior { ior 1.3 } }
  cylinder { <0,1.45,0>, <0,1.7,0>, 0.2 Tx(4, T_Brass2) } sphere { <0,1.98,0>, 0.34 Tx(4, T_Brass2) }
  rotate y*-20 translate <2.3,0,0.6> }
union {
  superellipsoid { <0.15,0.15> scale <1.25,0.5,0.8> translate y*0.5 Tx(5, Matt(<0.36,0.10,0.13>)) }
  superellipsoid { <0.15,0.15> scale <1.3,0.16,0.85> translate y*1.12 Tx(5, Matt(<0.42,0.12,0.15>)) }
  sphere { <0,0.95,-0.86>, 0.12 Tx(5, T_Brass2) }
  rotate y*12 translate <-5.2,0,1.2> }
union {
  sphere { 0, 1 scale <0.95,0.14,0.5> translate <0,0.42,0> }
  sphere_sweep { cubic_spline 6, <0.6,0.4,0>, 0.12, <0.85,0.4,0>, 0.13, <1.5,0.35,0>, 0.1, <2.2,0.26,0>, 0.15, <2.8,0.17,0>, 0.16, <3.2,0.1,0>, 0.16 tolerance 0.001 }
  Tx(6, Wood(<0.30,0.14,0.06>, <0.50,0.28,0.14>)) rotate y*14 translate <-2.4,-0.02,-1.9> }
union { #for (I,-5,5) #for (K,-2,2) cone { <I*0.14,0.35,K*0.14>, 0.03, <I*0.14,0.0,K*0.14>, 0.02 } #end #end Tx(6, Matt(<0.75,0.7,0.6>)) rotate y*14 translate <-2.4,0,-1.9> }
