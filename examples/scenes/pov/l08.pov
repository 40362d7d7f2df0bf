// A workbench from above: a steel rule, screws, nuts, washers, drills, spanners, pencils and nails in order.
#declare Large = true;
#include "common.inc"
camera { location <0, 62, -13> right x*3/2 up y look_at <0, 0, -0.4> angle 55 }
#declare SunDir = <-9, 14, 5>;
SoftLight(SunDir*8, <0,0,0>, <1.0,0.94,0.84>*0.95, 6)
light_source { <14, 60, -40> rgb <0.85,0.92,1.0>*0.36 shadowless }
SkyDome(<0.7,0.72,0.75>)
#declare R = seed(11);
#macro Paint(C) texture { pigment { rgb C } finish { ambient 0.05 diffuse 0.78 specular 0.3 roughness 0.02 } } #end
#macro Chalk(C) texture { pigment { rgb C } finish { ambient 0.05 diffuse 0.8 } } #end
#declare Steel = texture { pigment { rgb <0.62,0.64,0.66> } finish { ambient 0.08 diffuse 0.6 specular 0.6 roughness 0.03 metallic } };
#declare Dark = texture { pigment { rgb <0.24,0.25,0.27> } finish { ambient 0.06 diffuse 0.6 specular 0.4 roughness 0.03 metallic } };
#declare Brass = texture { pigment { rgb <0.70,0.52,0.22> } finish { ambient 0.08 diffuse 0.6 specular 0.6 roughness 0.03 metallic } };
#declare Metals = array[3] { Steel, Dark, Brass };
#for (I, -6, 6) box { <-48, -1, I*4.2-2.08>, <48, 0, I*4.2+2.08> Tx(10, texture { pigment { wood turbulence 0.04 octaves 2 color_map { [0 rgb <0.60,0.44,0.27>*(0.92+0.1*rand(R))] [1 rgb <0.52,0.37,0.21>] }
  scale <1.2,1.2,12> rotate y*90 rotate <1.5,0,2> translate <I*7,-9+I,3> } finish { ambient 0.05 diffuse 0.8 } }) } #end
plane { y, -0.4 Tx(10, Chalk(<0.16,0.10,0.06>)) }
// The rule: 60 centimetres, a line for each half centimetre, a number for each whole one.
#declare Step = 0.86;
#declare Long = 60*Step;
union {
  box { <-1, 0, -1.5>, <Long+1, 0.18, 1.5> Tx(2, Paint(<0.80,0.77,0.66>)) }
  #for (I, 0, 600) #local X = I*Step/10;
    #local H = (mod(I,10) = 0 ? 0.85 : (mod(I,5) = 0 ? 0.65 : 0.42));
    box { <X-0.017, 0.17, 1.5-H>, <X+0.017, 0.185, 1.49> Tx(2, Chalk(<0.04,0.04,0.05>)) }
  #end
  #for (I, 1, 60)
    #local N = (I = 38 & Anomalous ? 37 : I);
    #local T = text { ttf "/usr/share/fonts/truetype/dejavu/DejaVuSans-Bold.ttf" str(N,0,0) 0.1, 0 };
    #local M = (min_extent(T)+max_extent(T))/2;
    object { T translate <-M.x,-0.36,0> scale <0.39,0.39,1> rotate x*90 translate <I*Step-(I = 60)*0.12, 0.19, 0.22> Tx((I = 38 ? 1 : 2), Chalk(<0.04,0.04,0.05>)) }
  #end
  difference { cylinder { <Long+0.62, 0.1, -1.0>, <Long+0.62, 0.19, -1.0>, 0.2 } cylinder { <Long+0.62, 0, -1.0>, <Long+0.62, 0.2, -1.0>, 0.06 } Tx(2, Steel) }
  translate <-Long/2, 0, 0> rotate y*-4 translate <0.8, 0, -1.2>
}
// Hexagons as prisms of edge 1.
#declare Hex = prism { linear_spline 0, 1, 7, #for (I, 0, 6) <cos(I*pi/3), sin(I*pi/3)> #if (I < 6) , #end #end };
#macro Bolt(Id, X, Z, Turn, L, K)
  union { object { Hex scale <0.72,0.5,0.72> rotate z*90 rotate x*rand(R)*60 translate <0.0,0.63,0> } cylinder { <0,0.63,0>, <L,0.63,0>, 0.36 }
    #for (J, 0, (L-0.9)/0.17) torus { 0.36, 0.05 rotate z*90 translate <L*0.36+J*0.17*0.62,0.63,0> } #end
    Tx(Id, Metals[K]) rotate y*Turn translate <X,0,Z> }
#end
#macro Nut(X, Z, S, K) difference { object { Hex scale <S,S*0.75,S> } cylinder { -y, y*3, S*0.52 } Tx(4, Metals[K]) rotate y*rand(R)*60 translate <X,0,Z> } #end
#macro Washer(X, Z, S, K) difference { cylinder { 0, y*0.14, S } cylinder { -y, y, S*0.5 } Tx(5, Metals[K]) translate <X,0,Z> } #end
#macro Nail(X, Z, Turn, L) union { cylinder { <0,0.22,0>, <L,0.16,0>, 0.11 } cone { <L,0.16,0>, 0.11, <L+0.35,0.15,0>, 0.01 } cylinder { <-0.06,0.22,0>, <0.02,0.22,0>, 0.28 } Tx(6, Steel) rotate y*Turn translate <X,0.06,Z> } #end
#macro Drill(X, Z, S) union { cylinder { <0,S,0>, <S*9,S,0>, S } cone { <S*22,S,0>, S*0.96, <S*23,S,0>, 0 } cylinder { <S*9,S,0>, <S*22,S,0>, S*0.72 }
    #for (J, 0, 51) sphere { <S*9+J*S*0.25, S+S*0.42*cos(J*0.42), S*0.42*sin(J*0.42)>, S*0.55 } sphere { <S*9+J*S*0.25, S-S*0.42*cos(J*0.42), -S*0.42*sin(J*0.42)>, S*0.55 } #end
    Tx(7, Metals[mod(X+100,2)]) rotate y*90 translate <X,0,Z> } #end
#macro Spanner(X, Z, L, S) union {
    difference { cylinder { 0, y*0.5, S*1.5 } object { Hex scale <S,2,S> rotate y*30 translate -y*0.5 } box { <-S*3,-1,-S*0.86>, <0,2,S*0.86> } }
    box { <S*1.2,0.08,-S*0.55>, <L-S*1.1,0.42,S*0.55> }
    difference { cylinder { <L,0,0>, <L,0.5,0>, S*1.4 } object { Hex scale <S*0.9,2,S*0.9> translate <L,-0.5,0> } }
    Tx(8, Steel) rotate y*-90 translate <X,0,Z> } #end
#macro Pencil(X, Z, Turn, C) union {
  cylinder { <-4,0.4,0>, <5.2,0.4,0>, 0.4 Tx(9, Paint(C)) } cone { <5.2,0.4,0>, 0.4, <6.4,0.4,0>, 0.1 Tx(9, Chalk(<0.80,0.62,0.40>)) }
  cone { <6.4,0.4,0>, 0.1, <6.7,0.4,0>, 0 Tx(9, Chalk(<0.06,0.06,0.06>)) } cylinder { <-4.8,0.4,0>, <-4,0.4,0>, 0.42 Tx(9, Brass) } cylinder { <-5.4,0.4,0>, <-4.8,0.4,0>, 0.38 Tx(9, Chalk(<0.80,0.42,0.42>)) }
  rotate y*Turn translate <X,0,Z> } #end
#for (I, 0, 12) Bolt(3, -27+mod(I,7)*5.2, 15.2-floor(I/7)*2.6+rand(R)*0.4, -6+rand(R)*12, 2.2+0.15*I, mod(I,3)) #end
#for (I, 0, 13) Nut(11+mod(I,7)*2.4+rand(R)*0.4, 16-floor(I/7)*2.5+rand(R)*0.4, 0.65+0.35*rand(R), floor(rand(R)*3)) #end
#for (I, 0, 26) Washer(-28+mod(I,9)*2.1+rand(R)*0.3, 9.8-floor(I/9)*2.1+rand(R)*0.3, 0.5+0.34*rand(R), floor(rand(R)*3)) #end
#for (I, 0, 23) Nail(-6+floor(I/12)*6.2+rand(R)*0.3, 10.6-mod(I,12)*0.7, -1.5+rand(R)*3, 4.1) #end
#for (I, 0, 8) Drill(9+I*1.55, 10.0, 0.15+I*0.021) #end
#for (I, 0, 4) Spanner(-26+I*3.4, -17.6, 8.4+I*0.6, 0.62+I*0.11) #end
Pencil(0, -8.2, 4, <0.85,0.62,0.10>) Pencil(15, -8.0, -7, <0.70,0.13,0.11>) Pencil(28.6, 10.6, 82, <0.14,0.36,0.60>)
#for (I, 0, 24) #local X = -6.8+mod(I,9)*2.35+rand(R)*0.5; #local Z = -11.3-floor(I/9)*2.4+rand(R)*0.4;
  // Screws standing on their heads, seen from the pointed end; and round tins of paint to their right.
  union { cylinder { 0, y*0.3, 0.62 } cone { y*0.3, 0.62, y*0.6, 0.3 } cone { y*0.6, 0.3, y*2.6, 0.04 } #for (J, 0, 7) torus { 0.33-J*0.035, 0.05 translate y*(0.7+J*0.22) } #end Tx(3, Metals[mod(I,3)]) translate <X,0,Z> }
#end
#declare Cc = array[5] { <0.75,0.12,0.10>, <0.15,0.32,0.62>, <0.86,0.66,0.15>, <0.14,0.45,0.26>, <0.85,0.83,0.78> };
#for (I, 0, 4) union { difference { cylinder { 0, y*2.2, 1.75 } cylinder { y*1.6, y*3, 1.58 } Tx(11, Steel) } cylinder { y*1.5, y*1.7, 1.6 Tx(11, Paint(Cc[I])) } torus { 1.7, 0.1 translate y*2.2 Tx(11, Steel) } translate <17.6+mod(I,3)*4.3, 0, -11.6-floor(I/3)*4.2> } #end
